package web

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"holdfast/client/spec"
	"holdfast/proto"
)

// secretName matches the names of variables and flags whose values are not shown: those with one
// of some words in them, and those at whose end is a shorter one, as in SSH_KEY, --signing-key and
// signingKey.
var secretName = regexp.MustCompile(`(?i:passw|passphrase|secret|token|credential|api_?-?key|access_?-?key|private_?-?key)|(?i:(?:^|[^a-z])(?:key|pass|pwd)$)|[a-z](?:Key|Pass|Pwd)$`)

// urlPassword matches the password in a URL.
var urlPassword = regexp.MustCompile(`(://[^/?#\s:@]*:)[^/?#\s@]+@`)

const hidden = "(hidden)"

// configurationView is what the job was started with, secrets hidden.
type configurationView struct {
	*proto.JobSpec
	CommandLine string
	InQueue     string // into which YARN has put the job, which need not be the one that the job names
	Variables   []variable
	Roles       []roleView
	Directories []directoryOptions
	Groups      []optionGroup
}

type variable struct{ Name, Value string }

// option is an option as it is set.
type option struct {
	variable
	Usual bool // it is the default
}

// optionGroup is options under a heading.
type optionGroup struct {
	Title   string
	Options []option
}

type roleView struct {
	*proto.RoleSpec
	Options     []option
	CommandLine string // of its own; "": that of the job
	Loss        string
}

// directoryOptions is a checkpoint directory of the job.
type directoryOptions struct {
	Path    string
	Options []option
}

// configuration shows what the job was started with: every option that is set, by the tables
// of package spec.
func (s *server) configuration(_ *http.Request, status *proto.JobStatus) (string, any, error) {
	if s.Spec == nil {
		return "", nil, errNotFound
	}
	v := &configurationView{JobSpec: s.Spec, CommandLine: commandLine(s.Spec.Command), InQueue: status.GetQueue()}
	for _, name := range slices.Sorted(maps.Keys(s.Spec.Env)) {
		v.Variables = append(v.Variables, variable{name, shownValue(name, s.Spec.Env[name])})
	}
	set := spec.SettingsOf(s.Spec)
	for i, r := range s.Spec.Roles {
		loss := "it alone"
		if r.Loss == proto.LossRule_LOSS_RULE_ALL {
			loss = "all tasks"
		}
		v.Roles = append(v.Roles, roleView{r, shownOptions(set.Roles[i]), commandLine(r.Command), loss})
	}
	for i, c := range s.Spec.Checkpoints {
		v.Directories = append(v.Directories, directoryOptions{c.Path, shownOptions(set.Checkpoints[i])})
	}
	for i, o := range shownOptions(set.Job) {
		at := slices.IndexFunc(v.Groups, func(g optionGroup) bool { return g.Title == set.Job[i].Group })
		if at < 0 {
			at, v.Groups = len(v.Groups), append(v.Groups, optionGroup{Title: set.Job[i].Group})
		}
		v.Groups[at].Options = append(v.Groups[at].Options, o)
	}
	return "configuration", v, nil
}

// shownOptions returns options as the page shows them.
func shownOptions(list []spec.Setting) []option {
	var shown []option
	for _, s := range list {
		value := shownValue(s.Name, s.Value)
		if s.Secret {
			value = proto.ShownURL(s.Value)
		}
		shown = append(shown, option{variable{s.Name, value}, s.Usual})
	}
	return shown
}

// shownValue returns a value, unless its name says that it is a secret.
func shownValue(name, value string) string {
	if secretName.MatchString(name) {
		return hidden
	}
	return withoutPasswords(value)
}

// withoutPasswords returns a text without the passwords of the URLs in it.
func withoutPasswords(text string) string {
	return urlPassword.ReplaceAllString(text, "${1}"+hidden+"@")
}

// commandLine returns a command as shellLine does, with the values of flags that are secrets by
// their names hidden.
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
		parts = append(parts, withoutPasswords(arg))
	}
	return shellLine(parts)
}

// plainWord matches what a shell takes as it is. Braces are special to it only around a list or a
// range, and parentheses around what was hidden are to be seen for what they are.
var plainWord = regexp.MustCompile(`^(?:[\pL\pN_@%+=:,./-]|\{[\pL\pN_]*\}|\(hidden\))+$`)

// shellLine returns a command as a shell takes it.
func shellLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		if quoted[i] = w; !plainWord.MatchString(w) {
			quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
