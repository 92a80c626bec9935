package frameworks

import (
	"fmt"
	"maps"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// mxnet is MXNet with the parameter servers of its distributed KVStore (ps-lite). All tasks
// run the same script; on servers and the scheduler, importing MXNet serves and then ends the
// process (python/mxnet/kvstore_server.py). Nodes of ps-lite have numbers by which they come,
// and none that is lost can come back, so all begin again together. Without the role server
// each task trains for itself.
var mxnet = framework.Framework{
	Name: "mxnet", Title: "MXNet",
	Modules:    []string{"mxnet"},
	Imports:    []string{"mxnet"},
	Precedence: framework.Yields,
	AddRoles:   addMXNetScheduler,
	Observers:  observers,
	Rules:      mxnetRules,
	Check:      checkMXNet,
	Defaults:   python,
	Env:        mxnetEnv,
}

const (
	mxnetServer    = "server"
	mxnetScheduler = "scheduler"
)

// addMXNetScheduler adds the scheduler to a job with servers that has none: as large as a
// server, without GPUs.
func addMXNetScheduler(spec *proto.JobSpec) {
	if framework.HasRole(spec, mxnetServer) && !framework.HasRole(spec, mxnetScheduler) {
		spec.Roles = append([]*proto.RoleSpec{likeRole(framework.FindRole(spec, mxnetServer), mxnetScheduler)}, spec.Roles...)
	}
}

// mxnetRules: servers and the scheduler end when the workers have.
func mxnetRules(spec *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	switch {
	case !framework.HasRole(spec, mxnetServer):
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	case role == mxnetServer, role == mxnetScheduler:
		return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_EITHER
	}
	return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_REQUIRED
}

func checkMXNet(spec *proto.JobSpec) error {
	if !framework.HasRole(spec, mxnetServer) {
		return nil
	}
	for _, r := range spec.Roles {
		_, observer := observers[r.Name]
		switch {
		case observer:
		case r.Name != mxnetServer && r.Name != mxnetScheduler && r.Name != "worker":
			return fmt.Errorf("MXNet knows the roles scheduler, server and worker, and the job has %s; use one of these names", r.Name)
		case r.Name == mxnetScheduler && r.Count > 1:
			return fmt.Errorf("a job of MXNet has one scheduler, and this one %d; use --role scheduler=1", r.Count)
		case r.Processes > 1:
			return fmt.Errorf("MXNet counts one process in each %s, and the job has %d; use more tasks instead, as in --role %s=%d", r.Name, r.Processes, r.Name, r.Count*r.Processes)
		}
	}
	return nil
}

// mxnetEnv returns what DMLC's launchers give to the processes that they start, for ps-lite
// (src/postoffice.cc and src/van.cc there). The scheduler listens on its task's port, at the
// address that it tells, and all others on ports that they tell it.
func mxnetEnv(m framework.Member) map[string]string {
	env := map[string]string{"DMLC_ROLE": m.Task.Role, "DMLC_NODE_HOST": m.Host}
	workers, servers := 0, 0
	for _, p := range m.Members {
		switch p.Role {
		case mxnetServer:
			servers++
		case mxnetScheduler:
			env["DMLC_PS_ROOT_URI"], env["DMLC_PS_ROOT_PORT"] = m.Address(p.Host), strconv.Itoa(p.Port)
			if p.Task == m.Task && m.Host != "" {
				env["DMLC_PS_ROOT_URI"] = m.Host
			}
		default:
			workers++
		}
	}
	if m.Observer || servers == 0 {
		return nil
	}
	env["DMLC_NUM_WORKER"], env["DMLC_NUM_SERVER"] = strconv.Itoa(workers), strconv.Itoa(servers)
	maps.Copy(env, tonyEnv(m))
	return env
}
