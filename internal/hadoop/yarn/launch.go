package yarn

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/token"
	wire "holdfast/internal/hadoop/wire/yarn"
)

// LocalResource is a file that NodeManagers localize in a container's directory.
type LocalResource struct {
	Name       string // in the container's working directory; for an archive that of a directory
	URI        string // hdfs://host:port/path, hdfs://nameservice/path
	Size       int64
	Timestamp  int64 // ms: the file's modification time; another one is refused
	Archive    bool
	Visibility Visibility
}

// Visibility says for whom a NodeManager caches a LocalResource.
type Visibility string

// Visibilities. Public needs a file that everybody may read, below directories
// that everybody may search.
const (
	Application Visibility = "APPLICATION" // this application
	Private     Visibility = "PRIVATE"     // this user's applications
	Public      Visibility = "PUBLIC"
)

// EnvResources is the variable that passes the agents' LocalResources to the AM, as JSON.
const EnvResources = "HOLDFAST_RESOURCES"

// EncodeResources writes the value of EnvResources.
func EncodeResources(list []LocalResource) string {
	b, err := json.Marshal(list)
	if err != nil {
		panic(err) // plain structs
	}
	return string(b)
}

// DecodeResources reads the value of EnvResources.
func DecodeResources(s string) ([]LocalResource, error) {
	var list []LocalResource
	if err := json.Unmarshal([]byte(s), &list); err != nil {
		return nil, fmt.Errorf("read the agents' files from %s: %w", EnvResources, err)
	}
	for _, r := range list {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Check returns an error if the resource is not complete.
func (r LocalResource) Check() error {
	u, err := url.Parse(r.URI)
	switch {
	case err != nil:
		return fmt.Errorf("the file %q for containers: %w", r.Name, err)
	case r.Name == "" || strings.HasPrefix(r.Name, "/") || strings.Contains("/"+r.Name+"/", "/../"):
		return fmt.Errorf("the file %s cannot be called %q in a container: give it a name below the working directory", r.URI, r.Name)
	case u.Scheme == "" || u.Path == "":
		return fmt.Errorf("the file %q for containers is at %q, which NodeManagers cannot find: give a whole URI such as hdfs://host:port/path", r.Name, r.URI)
	}
	return nil
}

// Launch describes what a container runs.
type Launch struct {
	Resources   []LocalResource
	Environment map[string]string // values arrive as they are
	Command     string            // for bash; <LOG_DIR> is the container's log directory
	Credentials *token.Credentials
	// Who may see the application's report and logs, and who may end it, beside
	// its user; empty: nobody. See package acl.
	ViewACL, ModifyACL string
}

func (l Launch) proto() *wire.ContainerLaunchContextProto {
	p := &wire.ContainerLaunchContextProto{Command: []string{l.Command}}
	for _, r := range l.Resources {
		p.LocalResources = append(p.LocalResources, &wire.StringLocalResourceMapProto{Key: proto.String(r.Name), Value: r.proto()})
	}
	for _, k := range slices.Sorted(maps.Keys(l.Environment)) {
		p.Environment = append(p.Environment, &wire.StringStringMapProto{Key: proto.String(k), Value: proto.String(quote(l.Environment[k]))})
	}
	if l.Credentials != nil {
		p.Tokens = l.Credentials.Marshal()
	}
	for _, a := range []struct {
		access wire.ApplicationAccessTypeProto
		list   string
	}{
		{wire.ApplicationAccessTypeProto_APPACCESS_VIEW_APP, l.ViewACL},
		{wire.ApplicationAccessTypeProto_APPACCESS_MODIFY_APP, l.ModifyACL},
	} {
		if a.list != "" {
			p.Application_ACLs = append(p.Application_ACLs, &wire.ApplicationACLMapProto{AccessType: a.access.Enum(), Acl: &a.list})
		}
	}
	return p
}

func (r LocalResource) proto() *wire.LocalResourceProto {
	kind, visibility := wire.LocalResourceTypeProto_FILE, wire.LocalResourceVisibilityProto_APPLICATION
	if r.Archive {
		kind = wire.LocalResourceTypeProto_ARCHIVE
	}
	switch r.Visibility {
	case Private:
		visibility = wire.LocalResourceVisibilityProto_PRIVATE
	case Public:
		visibility = wire.LocalResourceVisibilityProto_PUBLIC
	}
	p := &wire.LocalResourceProto{
		Resource: &wire.URLProto{Port: proto.Int32(-1)}, // no port: java.net.URI's -1
		Size:     &r.Size, Timestamp: &r.Timestamp, Type: &kind, Visibility: &visibility,
	}
	u, err := url.Parse(r.URI)
	if err != nil {
		u = &url.URL{Path: r.URI} // Check has said so; the NodeManager will too
	}
	p.Resource.Scheme, p.Resource.File = proto.String(u.Scheme), proto.String(u.Path)
	if h := u.Hostname(); h != "" {
		p.Resource.Host = &h
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		p.Resource.Port = proto.Int32(int32(port))
	}
	if user := u.User.Username(); user != "" {
		p.Resource.UserInfo = &user
	}
	return p
}

// quote quotes a value so that it arrives unchanged, although the NodeManager first replaces
// {{, }}, <CPS> and <LOG_DIR> in it (ContainerLaunch.expandEnvironment) and then
// writes it between double quotes into a bash script
// (ContainerLaunch.UnixShellScriptBuilder.env). An empty string in the middle,
// "", ends and reopens the quotes: bash drops it, and Java does not recognise
// what it stands in.
func quote(v string) string {
	var b strings.Builder
	for i := 0; i < len(v); i++ {
		switch c := v[i]; c {
		case '\\', '"', '$', '`':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '{', '}':
			b.WriteByte(c)
			if i+1 < len(v) && v[i+1] == c {
				b.WriteString(`""`)
			}
		case '<':
			b.WriteByte(c)
			if rest := v[i+1:]; strings.HasPrefix(rest, "CPS>") || strings.HasPrefix(rest, "LOG_DIR>") {
				b.WriteString(`""`)
			}
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
