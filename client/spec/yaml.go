package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/proto"
)

// ReadDraft reads a job from a YAML file. Relative paths are relative to the directory
// of the file, and of what is no regular file, such as a pipe, or is a descriptor of this
// process, such as /dev/stdin, to the working directory.
// docs/options.md describes the keys.
func ReadDraft(name string) (*Draft, error) { return readFile(name).draft(name) }

// jobFile is what a job file had, or why it could not be read.
type jobFile struct {
	text []byte
	dir  string // that relative paths are relative to
	err  error
}

func readFile(name string) (f jobFile) {
	file, err := os.Open(name)
	if err == nil {
		defer file.Close()
		if f.text, err = io.ReadAll(file); err == nil {
			var info fs.FileInfo
			if info, err = file.Stat(); err == nil && info.Mode().IsRegular() && !isDescriptor(name) {
				f.dir = filepath.Dir(name)
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.err = client.Usagef("there is no job file %s: -f names a YAML file that describes the job", name)
	case errors.Is(err, syscall.EISDIR):
		f.err = client.Usagef("%s is a directory: -f names a YAML file that describes the job", name)
	case err != nil:
		f.err = fmt.Errorf("read the job file: %w", err)
	}
	return f
}

// isDescriptor reports whether a name is of a descriptor of a process, proc_pid_fd(5): that says
// nothing of where the file is, which the shell may have removed already.
func isDescriptor(name string) bool {
	for range 10 { // links
		dir, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			return false
		}
		if ok, _ := filepath.Match("/proc/*/fd", dir); ok {
			return true
		}
		to, err := os.Readlink(filepath.Join(dir, filepath.Base(name)))
		if err != nil {
			return false
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		name = to
	}
	return false
}

// draft returns the job of the file with this name.
func (f jobFile) draft(name string) (*Draft, error) {
	if f.err != nil {
		return nil, f.err
	}
	d, err := ParseDraft(f.text, f.dir)
	if err != nil {
		return nil, client.Usagef("the job file %s: %w", name, err)
	}
	return d, nil
}

// ParseDraft parses a job in YAML. Relative paths are relative to dir.
func ParseDraft(text []byte, dir string) (*Draft, error) {
	d := NewDraft()
	var document yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	wrong := func(err error) error {
		return fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if err := documents.Decode(&document); errors.Is(err, io.EOF) {
		return d, nil // empty
	} else if err != nil {
		return nil, wrong(err)
	}
	var second yaml.Node
	if err := documents.Decode(&second); err == nil {
		return nil, errorAt(&second, "another document begins after ---, and a file describes one job: remove it, or put it into a file of its own")
	} else if !errors.Is(err, io.EOF) {
		return nil, wrong(err)
	}
	d.dir = dir
	defer func() { d.dir = "" }()
	return d, decodeWith(&document, func(n *yaml.Node) error { return decode(n, "the file", jobOptions, d) })
}

// YAML returns the job that Spec has made of the draft, with all defaults, in the form
// that ReadDraft reads. Paths are absolute.
func (d *Draft) YAML(spec *proto.JobSpec) ([]byte, error) {
	whole := *d
	whole.Job = pb.Clone(spec).(*proto.JobSpec)
	whole.Job.Progress = d.Job.Progress // the usual pattern is long
	for _, r := range whole.Job.Roles {
		own := &proto.RoleSpec{FinishMs: unset} // of a role that the framework has added
		if at := slices.IndexFunc(d.Job.Roles, func(o *proto.RoleSpec) bool { return o.Name == r.Name }); at >= 0 {
			own = d.Job.Roles[at]
		}
		// What these are by default depends on the command and on other roles.
		r.Processes, r.Command = own.Processes, own.Command
		if own.FinishMs == unset {
			r.FinishMs = unset // the framework's usual time
		}
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(encode(jobOptions, &whole)); err != nil {
		return nil, fmt.Errorf("write the job as YAML: %w", err)
	}
	return text.Bytes(), nil
}

// unmarshaler calls a function with a node after the library has resolved aliases. It
// is not called for null.
type unmarshaler func(*yaml.Node) error

func (u *unmarshaler) UnmarshalYAML(n *yaml.Node) error { return (*u)(n) }

func decodeWith(n *yaml.Node, read func(*yaml.Node) error) error {
	u := unmarshaler(read)
	return n.Decode(&u)
}

// errorAt returns an error with the line of a node.
func errorAt(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %w", n.Line, fmt.Errorf(format, args...))
}

func unknownKey(n *yaml.Node, key, what string, known []string) error {
	known = slices.Sorted(slices.Values(known))
	return errorAt(n, "%q is not known in %s: there are %s%s", key, what, strings.Join(known, ", "), client.DidYouMean(key, known))
}

// eachPair calls f for each key of a mapping, in order, and refuses duplicates.
func eachPair(n *yaml.Node, what string, f func(key string, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return errorAt(n, "%s must be a mapping of names to values (NAME: VALUE)", what)
	}
	seen := map[string]bool{} // the library compares each key with every other
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			return errorAt(key, "%q stands twice in %s", key.Value, what)
		}
		seen[key.Value] = true
		if err := f(key.Value, n.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a scalar; empty for null.
func scalar(n *yaml.Node, what string) (text string, err error) {
	err = decodeWith(n, func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return errorAt(n, "%s: a single value is wanted here, not a list or a mapping", what)
		}
		text = n.Value
		return nil
	})
	return text, err
}

// eachItem calls f for each scalar of a list.
func eachItem(n *yaml.Node, what string, f func(string) error) error {
	if n.Kind != yaml.SequenceNode {
		return errorAt(n, "%s must be a list", what)
	}
	for _, item := range n.Content {
		s, err := scalar(item, "an item of "+what)
		if err != nil {
			return err
		}
		if err := f(s); err != nil {
			return errorAt(item, "%w", err)
		}
	}
	return nil
}

// textNode returns a node of a text. The library's own form of texts of several lines cannot
// be read again if some lines begin with spaces or tabs.
func textNode(s string) *yaml.Node {
	var n yaml.Node
	n.SetString(s)
	if strings.Contains(s, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return &n
}

// mapping is a YAML mapping that keeps the order of its keys.
type mapping struct{ content []*yaml.Node }

func (m *mapping) node() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: m.content}
}

func (m *mapping) put(key string, value any) {
	var name, node yaml.Node
	name.SetString(key)
	switch value := value.(type) {
	case string:
		node = *textNode(value)
	case []string:
		node = yaml.Node{Kind: yaml.SequenceNode}
		if !strings.Contains(strings.Join(value, ""), "\n") {
			node.Style = yaml.FlowStyle
		}
		for _, s := range value {
			node.Content = append(node.Content, textNode(s))
		}
	case map[string]string:
		node = yaml.Node{Kind: yaml.MappingNode}
		for _, k := range slices.Sorted(maps.Keys(value)) {
			node.Content = append(node.Content, textNode(k), textNode(value[k]))
		}
	default:
		if err := node.Encode(value); err != nil {
			panic(fmt.Sprintf("%s: %v", key, err)) // numbers, and lists and mappings of them can be
		}
	}
	m.content = append(m.content, &name, &node)
}
