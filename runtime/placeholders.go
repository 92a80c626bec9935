package runtime

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// placeholder is a word in braces that a $ does not claim for a shell. RE2 has
// no look-behind, so the character before belongs to the match.
var placeholder = regexp.MustCompile(`(^|[^$])\{([A-Za-z][A-Za-z0-9_-]*)\}`)

// Left returns the words in braces that Command leaves in text as they are, and
// those in whose place it would put something.
func Left(spec *proto.JobSpec, text string) (left, known []string) {
	values := placeholders(spec, framework.Attempt{})
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		if _, ok := values[m[2]]; !ok {
			left = append(left, m[2])
		}
	}
	return left, slices.Sorted(maps.Keys(values))
}

// Placeholders returns the names of what is replaced in commands, sorted, of any framework; but for
// the addresses of roles, {ROLE_hosts}.
func Placeholders() []string {
	names := map[string]bool{}
	for _, f := range frameworks.All {
		for name := range placeholders(&proto.JobSpec{Framework: f.Name}, framework.Attempt{}) {
			if !strings.HasSuffix(name, "_hosts") {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func placeholders(spec *proto.JobSpec, a framework.Attempt) map[string]string {
	values := map[string]string{
		// A script that takes --ps_hosts takes it empty as well, so jobs
		// without such a role need no other command line.
		"ps_hosts": "", "worker_hosts": "", "chief_hosts": "", "evaluator_hosts": "",
	}
	for _, r := range spec.Roles {
		values[r.Name+"_hosts"] = strings.Join(hosts(spec, r.Name, a.Ports), ",")
	}
	f, m := frameworks.Of(spec), member(spec, a)
	maps.Copy(values, memberPlaceholders(m))
	if f.Placeholders != nil {
		maps.Copy(values, f.Placeholders(m))
	}
	values["role"] = a.Task.Role
	values["index"] = strconv.Itoa(a.Task.Index)
	values["task"] = a.Task.Name
	values["port"] = strconv.Itoa(a.Ports[a.Task.Name])
	for i := range mostPorts - 1 {
		values[portPlaceholder(i)] = ""
		if i < len(a.MorePorts) {
			values[portPlaceholder(i)] = strconv.Itoa(a.MorePorts[i])
		}
	}
	values["host"] = a.Host
	values["attempt"] = strconv.Itoa(a.Number)
	return values
}

// memberPlaceholders are those that tell where a member stands among the others. An
// observer has no rank, and gets none.
func memberPlaceholders(m framework.Member) map[string]string {
	values := map[string]string{
		"rank": "", "node_rank": "", "world_size": strconv.Itoa(m.World()),
		"local_rank": strconv.Itoa(m.Local), "local_world_size": strconv.Itoa(m.Locals),
		"master_addr": "", "master_port": "", "cluster_json": m.ClusterJSON(),
	}
	if !m.Observer {
		values["rank"], values["node_rank"] = strconv.Itoa(m.Rank), strconv.Itoa(m.Node)
	}
	if len(m.Members) > 0 {
		values["master_addr"] = m.Address(m.Members[0].Host)
		values["master_port"] = strconv.Itoa(m.Members[0].Port)
	}
	return values
}

// fill replaces the placeholders in one word, once: what was put in is not
// looked at again.
func fill(word string, values map[string]string) string {
	var out strings.Builder
	rest := 0
	for at := 0; at <= len(word); {
		m := placeholder.FindStringSubmatchIndex(word[at:])
		if m == nil {
			break
		}
		name := word[at+m[4] : at+m[5]]
		open, end := at+m[4]-1, at+m[1]
		if v, ok := values[name]; ok {
			out.WriteString(word[rest:open])
			out.WriteString(v)
			rest = end
		}
		// The closing brace may be the character before the next opening one.
		at = end - 1
	}
	out.WriteString(word[rest:])
	return out.String()
}
