package frameworks

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// torchft is PyTorch with torchft: each task is a replica group, which holds the whole
// model. Groups agree on their members at each step through the lighthouse. One that is
// lost comes back alone and has the model from a peer; the others meanwhile go on.
var torchft = framework.Framework{
	Name: "torchft", Title: "torchft",
	Modules:    []string{"torchft"},
	Implied:    func(s *proto.JobSpec) bool { return framework.HasRole(s, torchftReplica) },
	Imports:    []string{"torchft"},
	Precedence: framework.Leads,
	StartedAs:  pytorch.Name,
	AddRoles:   addLighthouse,
	Observers:  observers,
	Rules:      torchftRules,
	Check:      checkTorchFT,
	Defaults:   torchftDefaults,
	Env:        torchftEnv,

	ProcessPerGPU: true, SharedGPUs: true, TellsLaunchers: true,
	Warm:      pytorch.Warm,
	ErrorFile: pytorch.ErrorFile,
	Failures: framework.Failures{
		Any: []string{"RuntimeError", "TimeoutError", "AttributeError"},
		Phrases: []string{
			`lighthouse quorum failed`, `Failed to connect to lighthouse`, // src/manager.rs
			`'Future' object has no attribute '_fut'`, // ddp.py of 0.2.0, where groups have not reached each other
		},
	},
}

// The roles of torchft's jobs. Tasks of any other role, but for observers, are replica
// groups, too.
const (
	torchftLighthouse = "lighthouse"
	torchftReplica    = "replica"
)

// lighthouseMB is more memory than a lighthouse and its agent need.
const lighthouseMB = 1 << 10

// addLighthouse adds the lighthouse to a job that has none, and its command where it has
// none. It lets replica groups go on for as long as the job's minimum of them is there,
// which is one where the user names none.
func addLighthouse(spec *proto.JobSpec) {
	if !framework.HasRole(spec, torchftLighthouse) {
		other := max(0, slices.IndexFunc(spec.Roles, func(r *proto.RoleSpec) bool { return isReplica(r.Name) }))
		r := likeRole(spec.Roles[other], torchftLighthouse)
		r.MemoryMb, r.Vcores, r.MemoryMaxMb = min(r.MemoryMb, lighthouseMB), 1, 0
		spec.Roles = append([]*proto.RoleSpec{r}, spec.Roles...)
	}
	r := framework.FindRole(spec, torchftLighthouse)
	r.Coordinates = true
	if len(r.Command) > 0 {
		return
	}
	least := int32(0)
	for _, r := range spec.Roles {
		if isReplica(r.Name) {
			least += r.Min
		}
	}
	r.Command = []string{
		interpreterOf(spec.Command), "-m", "_holdfast.lighthouse",
		"--min_replicas", strconv.Itoa(max(1, int(least))), "--bind", "[::]:{port}",
	}
}

// isReplica reports whether a role's tasks are replica groups.
func isReplica(role string) bool {
	_, observer := observers[role]
	return role != torchftLighthouse && !observer
}

func torchftRules(_ *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	if role == torchftLighthouse {
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_SERVICE
	}
	return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
}

func checkTorchFT(spec *proto.JobSpec) error {
	switch r := framework.FindRole(spec, torchftLighthouse); {
	case r.Count > 1:
		return fmt.Errorf("replica groups of torchft meet at one lighthouse, and the job has %d; use --lighthouse 1", r.Count)
	case r.Processes > 1:
		return fmt.Errorf("a lighthouse of torchft is one process, and the job is to have %d; leave --lighthouse-processes out", r.Processes)
	}
	return nil
}

// torchftDefaults: without retries, replica groups would end with the lighthouse (manager.py).
// The program's quorum_timeout bounds them all.
var torchftDefaults = func() map[string]string {
	env := maps.Clone(python)
	env["TORCHFT_QUORUM_RETRIES"] = "30"
	return env
}()

// torchftEnv returns what PyTorch's launchers give to the processes of one replica group,
// and torchft's own variables. Peers reach the group's store and its manager at the address
// that the group tells the lighthouse: the task's virtual one, which is the same everywhere.
// The manager takes it from HOLDFAST_TORCHFT_HOST (runtime/python/_holdfast/torchft.py).
func torchftEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	var own framework.Peer
	groups, group := 0, 0
	env := map[string]string{}
	for _, p := range m.Members {
		if p.Task == m.Task {
			own, group = p, groups
		}
		if isReplica(p.Role) {
			groups++
		} else {
			env["TORCHFT_LIGHTHOUSE"] = fmt.Sprintf("http://%s:%d", m.Address(p.Host), p.Port)
		}
	}
	if !isReplica(m.Task.Role) {
		return env
	}
	own.Host = own.Virtual
	if m.Forwarded { // peers come on ports that nobody knows before
		own.Host = m.Host
	}
	alone := m
	alone.Members, alone.Node, alone.Rank = []framework.Peer{own}, 0, m.Local
	maps.Copy(env, torchEnv(alone))
	env["PET_LOCAL_ADDR"], env["HOLDFAST_TORCHFT_HOST"] = own.Host, own.Host
	env["REPLICA_GROUP_ID"], env["NUM_REPLICA_GROUPS"] = strconv.Itoa(group), strconv.Itoa(groups)
	return env
}
