package frameworks

import (
	"path"
	"strconv"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/interpreter"
)

// observers are roles that only look at what the others save: an evaluator gets the
// time to evaluate the last checkpoint and to export it.
var observers = map[string]time.Duration{"evaluator": 5 * time.Minute, "tensorboard": 0}

// allTogether are the rules of a framework whose tasks are ranks of one group.
func allTogether(*proto.JobSpec, string) (proto.LossRule, proto.CompletionRule) {
	return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_REQUIRED
}

// likeRole returns a role of one task that is as large as those of another, without GPUs and
// the like.
func likeRole(other *proto.RoleSpec, name string) *proto.RoleSpec {
	r := pb.Clone(other).(*proto.RoleSpec)
	r.Name, r.Count, r.Min, r.Gpus, r.Resources, r.Processes, r.Command = name, 1, 0, 0, nil, 0, nil
	return r
}

// python keeps the output of Python programs from staying in their buffer,
// where the log of a task that dies would lack its last lines.
var python = map[string]string{"PYTHONUNBUFFERED": "1"}

// tonyEnv returns the variables by which TonY tells every task which one it is
// (ApplicationMaster.java in tony-core). It counts the tasks that the job waits for, which
// parameter servers are not.
func tonyEnv(m framework.Member) map[string]string {
	awaited := 0
	for _, p := range m.Members {
		if p.Role != "ps" {
			awaited++
		}
	}
	return map[string]string{
		"JOB_NAME":   m.Task.Role,
		"TASK_INDEX": strconv.Itoa(m.RoleIndex()),
		"TASK_NUM":   strconv.Itoa(awaited),
	}
}

// interpreterOf returns the Python that runs a command, as far as the command says so: it
// is the one beside a launcher, and beside a program in an environment's directory bin.
func interpreterOf(command []string) string {
	const onPath = "python3"
	switch {
	case len(command) == 0:
		return onPath
	case interpreter.IsPython(command[0]):
		return command[0]
	case interpreter.IsShell(command[0]), path.Base(command[0]) == "env":
		return onPath
	case torchLaunchers.Program(command) != "", path.Base(path.Dir(command[0])) == "bin":
		return path.Join(path.Dir(command[0]), onPath)
	}
	return onPath
}
