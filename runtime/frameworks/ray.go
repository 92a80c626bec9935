package frameworks

import (
	"fmt"
	"maps"
	"net"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// ray is Ray: each task is a node of one cluster, and the head's runs the program. What
// Ray itself makes again when a worker is lost is the program's to say (max_retries,
// FailureConfig). With the head everything is lost that Ray knows: then the workers, in the
// same attempts, leave the cluster and join the next (runtime/python/_holdfast/ray.py).
var ray = framework.Framework{
	Name: "ray", Title: "Ray",
	Modules:    []string{"ray"},
	Imports:    []string{"ray"},
	Precedence: framework.Leads,
	AddRoles:   addRayHead,
	Observers:  observers,
	Rules:      rayRules,
	Check:      checkRay,
	Defaults:   rayDefaults,
	Env:        rayEnv,
	Launch:     launchRay,
	Failures: framework.Failures{
		Lost: []string{"NodeDiedError", "OwnerDiedError", "ObjectLostError", "ActorUnavailableError"},
		Any:  []string{"ActorDiedError", "RayActorError", "WorkerCrashedError"},
		Phrases: []string{ // of ray/exceptions.py
			`The actor died unexpectedly`, `The actor is dead because its (?:node|owner) has died`, `The worker died unexpectedly`,
		},
	},
	Advice: []framework.Advice{{
		Says: `When connecting to an existing cluster, (?:num_cpus|num_gpus|resources|object_store_memory)`,
		Do:   "The script gives ray.init the size of a cluster of its own. Leave that out, and choose with --ROLE-vcores, --ROLE-gpus and --ROLE-memory; or run the script with --framework none.",
	}},
}

// rayHead is the role of the task with Ray's head node and the program.
const rayHead = "head"

// addRayHead adds the head to a job that has none: as large as a task of its first role,
// without GPUs.
func addRayHead(spec *proto.JobSpec) {
	if framework.HasRole(spec, rayHead) {
		return
	}
	spec.Roles = append([]*proto.RoleSpec{likeRole(spec.Roles[0], rayHead)}, spec.Roles...)
}

// rayRules: the head's program decides when the job is done. Workers do not end by
// themselves, and the cluster can start without all of them.
func rayRules(_ *proto.JobSpec, role string) (proto.LossRule, proto.CompletionRule) {
	if role == rayHead {
		return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_REQUIRED
	}
	return proto.LossRule_LOSS_RULE_ALONE, proto.CompletionRule_COMPLETION_RULE_EITHER
}

func checkRay(spec *proto.JobSpec) error {
	for _, r := range spec.Roles {
		_, observer := observers[r.Name]
		switch {
		case r.Name == rayHead && r.Count > 1:
			return fmt.Errorf("a cluster of Ray has one head, and the job has %d; the others are workers: use --head 1 --worker N", r.Count)
		case !observer && r.Processes > 1:
			return fmt.Errorf("the processes of a %s are started by Ray itself, as many as it has vcores; leave --%s-processes out, or use --%s-vcores %d", r.Name, r.Name, r.Name, r.Processes)
		case r.Name != rayHead && !observer && len(r.Command) > 0:
			return fmt.Errorf("the role %s has a command of its own, and only the head of a cluster of Ray runs one; leave it out", r.Name)
		}
	}
	return nil
}

// rayDefaults: nothing is told to Ray's makers, and what tasks of Ray print reaches a log
// instead of a terminal.
var rayDefaults = func() map[string]string {
	env := maps.Clone(python)
	env["RAY_USAGE_STATS_ENABLED"], env["RAY_COLOR_PREFIX"] = "0", "0"
	return env
}()

// rayEnv returns what ray.init reads where it is given no address, or "auto".
func rayEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	return map[string]string{"RAY_ADDRESS": rayAddress(m)}
}

// rayAddress is that of Ray's head as an attempt reaches it.
func rayAddress(m framework.Member) string {
	for _, p := range m.Members {
		if p.Role != rayHead {
			continue
		}
		host := m.Address(p.Host)
		if p.Task == m.Task && m.Host != "" { // Ray takes it for the node's address, too
			host = m.Host
		}
		return net.JoinHostPort(host, strconv.Itoa(p.Port))
	}
	return ""
}

// launchRay returns the command of runtime/python/_holdfast/ray.py, with the arguments of ray start
// that say how large the node is. Ray's own choice would be the whole machine.
func launchRay(spec *proto.JobSpec, m framework.Member, command []string) []string {
	if m.Observer {
		return command
	}
	role := framework.FindRole(spec, m.Task.Role)
	objects := role.MemoryMb << 20 * 3 / 10 // as much of the container as Ray would take of the machine
	args := []string{interpreterOf(command), "-m", "_holdfast.ray",
		fmt.Sprintf("--num-cpus=%d", max(1, role.Vcores)),
		fmt.Sprintf("--object-store-memory=%d", max(objects, leastObjects)),
		fmt.Sprintf("--memory=%d", max(role.MemoryMb<<20-objects, leastObjects)),
	}
	if role.Gpus > 0 {
		args = append(args, fmt.Sprintf("--num-gpus=%d", role.Gpus))
	}
	if m.Task.Role != rayHead {
		return args
	}
	return append(append(args, "--"), command...)
}

// leastObjects is the smallest object store that Ray accepts
// (OBJECT_STORE_MINIMUM_MEMORY_BYTES in ray/_private/ray_constants.py).
const leastObjects = 75 << 20
