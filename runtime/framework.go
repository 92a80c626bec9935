package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/proto"
)

// frameworks are all that there are, in the order in which they are offered and
// consulted. The last one is for programs of any other kind.
var frameworks = []*Framework{&tensorflow, &pytorch, &torchft, &jax, &horovod, &xgboost, &lightgbm, &ray, &mxnet, &none}

// Framework is what Holdfast knows about one framework. Except for Name, every
// field may be empty.
type Framework struct {
	Name  string // the value of JobSpec.framework
	Title string // the framework as its makers write it

	// Implied reports whether a job that names no framework is one of this
	// framework. Commands are programs that imply the same, by the base names
	// under which a command runs them; LaunchModules are Python modules that do where
	// python -m runs them, and Imports where a script imports them. Commands and
	// LaunchModules start the processes of a task themselves.
	Implied       func(*proto.JobSpec) bool
	Commands      []string
	LaunchModules []string
	Imports       []string
	// Precedence decides whose a script is that imports several: that of the highest.
	Precedence int
	// StartedAs is the framework whose commands start programs of this one, too: a script
	// that imports this one is of this one then.
	StartedAs string

	// AddRoles adds the roles that every job of the framework has.
	AddRoles func(*proto.JobSpec)
	// Observers are roles that are no members of the framework's cluster: they
	// have no rank, and neither their loss nor their end affects the others.
	// Each has the time for which its tasks may go on after the job has
	// succeeded, unless the user chooses another.
	Observers map[string]time.Duration
	// Rules returns the rules of a role that is no observer. Without it, every
	// task is restarted alone and must end successfully.
	Rules func(spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule)
	// SavesTogether reports whether ranks take SIGTERM as a sign to agree on a step at which
	// all of them save, and do not end by it. With one of them lost they cannot.
	SavesTogether func(*proto.JobSpec) bool
	// Check refuses what the framework would refuse, or wait for, later.
	Check func(*proto.JobSpec) error
	// Notes are about what is accepted and may not work.
	Notes func(*proto.JobSpec) []string
	// Elastic says that ranks can go on as another number of them, from a checkpoint.
	Elastic bool
	// Options are those options of a job that only this framework has.
	Options []Option

	// Defaults are environment variables of every task.
	Defaults map[string]string
	// Env returns the environment variables by which a task finds its peers.
	Env func(Member) map[string]string
	// Launch returns the command that an attempt is started with, given the user's.
	Launch func(spec *proto.JobSpec, m Member, command []string) []string
	// Placeholders are those that only this framework has.
	Placeholders func(Member) map[string]string
	// TensorBoard reports whether TensorBoard has the second port of a task.
	TensorBoard func(*proto.JobSpec, Task) bool
	// ProcessPerGPU says that scripts run as one process for each GPU of a task, unless
	// the user chooses another number. SharedGPUs says that processes of a task see all
	// its GPUs and choose one by LOCAL_RANK; otherwise each sees its own share only.
	ProcessPerGPU, SharedGPUs bool
	// TellsLaunchers says that launchers find in the environment how many processes they are
	// to start (Member.Launched).
	TellsLaunchers bool
	// Shim returns the settings of the framework's Python module in
	// python/_holdfast.
	Shim func(*proto.JobSpec) map[string]string
	// Warm is the Python module that warm interpreters import: it takes seconds
	// to import, and a forked process can use it.
	Warm string

	Failures  Failures
	Advice    []Advice
	ErrorFile *ErrorFile

	// Modules are the names of the framework's distributions on PyPI.
	Modules []string
}

// The values of Framework.Precedence beside 0.
const (
	yields = -1 // its library often serves a single process of another framework's script
	leads  = 1  // its scripts use others
)

// Option is an option of a job that one framework has.
type Option struct {
	Flag  string // --tf1
	For   string // what it is for, as in "it is for ..."
	Given func(*proto.JobSpec) bool
}

// Failures recognizes the last words of a task that ended because it lost a peer.
type Failures struct {
	// Lost are names of exceptions that mean a lost peer, whatever their message, unless
	// there is advice about it.
	Lost []string
	// Any are names of exceptions that may have any cause, which their message tells.
	Any []string
	// Launchers are names of exceptions by which a launcher says that a process of its
	// own failed, whose last words stand before.
	Launchers []string
	// Phrases are regular expressions, without regard to case, for messages about
	// a lost peer. They count in exceptions of Any, and where there is no exception.
	Phrases []string
}

// Advice is what to do about a failure.
type Advice struct {
	Says string // a regular expression (RE2) that the output matches
	Do   string // for a person
}

// ErrorFile is a file in which a framework writes why a process failed.
type ErrorFile struct {
	Variable string // the environment variable that names it
	// Read returns the output that the file stands for, and the time of the
	// failure in milliseconds since 1970; "" if the file tells nothing.
	Read func(content []byte) (atMS int64, text string)
}

// Member is an attempt of a task as its framework sees it.
type Member struct {
	Attempt
	// Observer is true for a task that is no member of the cluster; it has no rank.
	Observer bool
	Members  []Peer // all members, by rank
	// Node is the member's position in Members, and Rank that of this process among
	// the processes of all members.
	Node, Rank int
	// Locals is how many processes the task is started as: see Attempt.Local.
	Locals int
	// Launched is how many processes the command is to start, where it is a launcher.
	Launched int
	// TensorBoardPort is one of MorePorts; 0: the task has no TensorBoard.
	TensorBoardPort int
}

// World is the number of processes of all members.
func (m Member) World() int {
	n := 0
	for _, p := range m.Members {
		n += p.Processes
	}
	return n
}

// mostProcesses is how many processes the tasks of all members run the program as, whoever
// starts them, where no task is absent.
func (f *Framework) mostProcesses(spec *proto.JobSpec) int {
	n := 0
	for _, r := range spec.Roles {
		if !f.observes(r.Name) {
			each := Processes(spec, r.Name)
			if f.TellsLaunchers {
				each = launchedProcesses(spec, r.Name)
			}
			n += int(r.Count) * each
		}
	}
	return n
}

// cluster returns the addresses of the members, NAME:PORT, by their roles.
func (m Member) cluster() map[string][]string {
	c := map[string][]string{}
	for _, p := range m.Members {
		c[p.Role] = append(c[p.Role], fmt.Sprintf("%s:%d", p.Host, p.Port))
	}
	return c
}

// index is the position of the member among those of its role.
func (m Member) index() int {
	n := 0
	for _, p := range m.Members {
		if p.Role == m.Task.Role && p.Index < m.Task.Index {
			n++
		}
	}
	return n
}

// clusterJSON is cluster as text.
func (m Member) clusterJSON() string {
	b, err := json.Marshal(m.cluster())
	if err != nil {
		panic(err) // strings
	}
	return string(b)
}

// placeholders are those that tell where a member stands among the others. An
// observer has no rank, and gets none.
func (m Member) placeholders() map[string]string {
	values := map[string]string{
		"rank": "", "node_rank": "", "world_size": strconv.Itoa(m.World()),
		"local_rank": strconv.Itoa(m.Local), "local_world_size": strconv.Itoa(m.Locals),
		"master_addr": "", "master_port": "", "cluster_json": m.clusterJSON(),
	}
	if !m.Observer {
		values["rank"], values["node_rank"] = strconv.Itoa(m.Rank), strconv.Itoa(m.Node)
	}
	if len(m.Members) > 0 {
		values["master_addr"] = m.address(m.Members[0].Host)
		values["master_port"] = strconv.Itoa(m.Members[0].Port)
	}
	return values
}

// Peer is a member with the address at which the others reach it.
type Peer struct {
	Task
	Host    string
	Virtual string // the address that Host stands for, as a number
	Port    int
	// Processes is how many it is started as, and Launched how many its command is to start,
	// where that is a launcher.
	Processes, Launched int
}

// FrameworkNames are the values of JobSpec.framework.
func FrameworkNames() []string {
	var names []string
	for _, f := range frameworks {
		names = append(names, f.Name)
	}
	return names
}

// Frameworks returns all frameworks. The caller must not change them.
func Frameworks() []*Framework { return slices.Clone(frameworks) }

// find returns the framework of a name; nil if there is none.
func find(name string) *Framework {
	for _, f := range frameworks {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// frameworkOf returns the framework of a complete spec.
func frameworkOf(spec *proto.JobSpec) *Framework {
	if f := find(spec.Framework); f != nil {
		return f
	}
	return &none
}

// Notes are what the framework of a complete spec has to say of what may not work, for a
// person.
func Notes(spec *proto.JobSpec) []string {
	if f := frameworkOf(spec); f.Notes != nil {
		return f.Notes(spec)
	}
	return nil
}

// UsualFinish is how long a task of a role may go on after the job has succeeded,
// unless the user chooses another time.
func UsualFinish(framework, role string) time.Duration {
	if f := find(framework); f != nil {
		return f.Observers[role]
	}
	return 0
}

func (f *Framework) observes(role string) bool {
	_, ok := f.Observers[role]
	return ok
}

// rules returns what the loss and the end of a role's task mean for the job.
func (f *Framework) rules(spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	switch {
	case f.observes(role):
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_OPTIONAL
	case f.Rules == nil:
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	}
	return f.Rules(spec, role)
}

// FrameworkErrorFile returns the error file of an attempt with an environment: one
// that the environment names already, or that of its framework, with the name that is
// to be set then; nil if it has none.
func FrameworkErrorFile(env map[string]string) (file *ErrorFile, name string) {
	for _, f := range frameworks {
		if f.ErrorFile != nil && env[f.ErrorFile.Variable] != "" {
			return f.ErrorFile, env[f.ErrorFile.Variable]
		}
	}
	if f := find(env["HOLDFAST_FRAMEWORK"]); f != nil {
		return f.ErrorFile, ""
	}
	return nil, ""
}

// member makes an attempt's view of the job. A port that is not known is 0.
func (f *Framework) member(spec *proto.JobSpec, a Attempt) Member {
	m := Member{Attempt: a, Observer: f.observes(a.Task.Role), Locals: Processes(spec, a.Task.Role)}
	m.Launched = launchedProcesses(spec, a.Task.Role)
	if len(a.MorePorts) > 0 && f.TensorBoard != nil && f.TensorBoard(spec, a.Task) {
		m.TensorBoardPort = a.MorePorts[0]
	}
	rank := 0
	for i, t := range Tasks(spec) {
		if f.observes(t.Role) || slices.Contains(a.Absent, int32(i)) {
			continue
		}
		if t == a.Task {
			m.Node, m.Rank = len(m.Members), rank+a.Local
		}
		virtual := VirtualAddress(i)
		if a.Virtual != nil {
			virtual = a.Virtual[i].String()
		}
		p := Peer{Task: t, Host: t.Name, Virtual: virtual, Port: a.Ports[t.Name], Processes: Processes(spec, t.Role), Launched: launchedProcesses(spec, t.Role)}
		m.Members = append(m.Members, p)
		rank += p.Processes
	}
	return m
}

// taskVariables are those that Env of any framework sets, those that name an attempt's
// error file, and those that limit a process to GPUs.
var taskVariables = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{visibleGPUs: true, orderOfGPUs: true}
	m := Member{Locals: 1, Members: []Peer{{}}, TensorBoardPort: 1, Attempt: Attempt{Interface: "lo"}}
	for _, f := range frameworks {
		if f.ErrorFile != nil {
			all[f.ErrorFile.Variable] = true
		}
		if f.Env == nil {
			continue
		}
		for name := range f.Env(m) {
			all[name] = true
		}
	}
	return all
})

// SaysWhichTask reports whether a variable is one of those by which frameworks tell a
// process which task and attempt it is. Nothing reads them as it is imported.
func SaysWhichTask(variable string) bool { return taskVariables()[variable] }

// hasRole reports whether a job has tasks of a role.
func hasRole(spec *proto.JobSpec, name string) bool { return roleCount(spec, name) > 0 }

// roleCount is how many tasks of a role a job has.
func roleCount(spec *proto.JobSpec, name string) int { return int(findRole(spec, name).GetCount()) }

// oneOf makes a regular expression of the names of exceptions, dotted or not, at
// the beginning of a text.
func oneOf(names []string) string {
	return `^(?:[A-Za-z_]\w*\.)*(?:` + strings.Join(names, "|") + `)\b`
}
