package web

import (
	"cmp"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"holdfast/proto"
)

// secretName matches the names of variables and flags whose values are not shown.
var secretName = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential|api_?-?key|access_?-?key|private_?-?key`)

const hidden = "(hidden)"

// configurationView is what the job was started with, secrets hidden.
type configurationView struct {
	*proto.JobSpec
	CommandLine string
	InQueue     string // which need not be the one that the job names
	Variables   []variable
	Roles       []roleView
	Others      bool // a role asks for other resources than memory, cores and GPUs
}

type variable struct{ Name, Value string }

type roleView struct {
	*proto.RoleSpec
	CommandLine string // of its own; "": that of the job
	Loss        string
}

// configuration shows what the job was started with.
func (s *server) configuration(_ *http.Request, status *proto.JobStatus) (string, any, error) {
	if s.Spec == nil {
		return "", nil, errNotFound
	}
	v := &configurationView{JobSpec: s.Spec, CommandLine: commandLine(s.Spec.Command), InQueue: cmp.Or(status.GetQueue(), s.Spec.Queue)}
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Env)) {
		value := s.Spec.Env[name]
		if secretName.MatchString(name) {
			value = hidden
		}
		v.Variables = append(v.Variables, variable{name, value})
	}
	for _, r := range s.Spec.Roles {
		loss := "it alone"
		if r.Loss == proto.LossRule_LOSS_RULE_ALL {
			loss = "all tasks"
		}
		v.Others = v.Others || len(r.Resources) > 0
		v.Roles = append(v.Roles, roleView{r, commandLine(r.Command), loss})
	}
	return "configuration", v, nil
}

// commandLine returns a command as a shell takes it, with the values of flags that are
// secrets by their names hidden.
func commandLine(command []string) string {
	var parts []string
	hide := false
	for _, arg := range command {
		name, _, assigned := strings.Cut(arg, "=")
		switch {
		case hide && !strings.HasPrefix(arg, "-"):
			arg, hide = hidden, false
		case assigned && secretName.MatchString(name):
			arg, hide = name+"="+hidden, false
		default:
			hide = strings.HasPrefix(arg, "-") && secretName.MatchString(arg)
		}
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$\\`|&;<>*?") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		parts = append(parts, arg)
	}
	return strings.Join(parts, " ")
}
