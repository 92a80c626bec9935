package frameworks

import (
	"fmt"
	"maps"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// horovod is Horovod with gloo, whatever it trains with. A rank that comes back alone
// cannot join the others, so all begin again together.
var horovod = framework.Framework{
	Name: "horovod", Title: "Horovod",
	Modules:       []string{"horovod"},
	Commands:      horovodLauncher.Commands,
	LaunchModules: horovodLauncher.LaunchModules,
	Imports:       []string{"horovod"},
	Precedence:    framework.Leads,
	Observers:     observers,
	Rules:         allTogether,
	Check:         checkHorovod,
	Defaults:      python,
	Env:           horovodEnv,
	Elastic:       true,
	ProcessPerGPU: true, SharedGPUs: true, // scripts choose by hvd.local_rank()
	Failures: framework.Failures{
		Any: []string{"HorovodInternalError"},
		Phrases: []string{
			`Connection closed by peer`, `Connection reset by peer`, `Timed out waiting`, `Read error`,
			`Horovod has been shut down`, // by the failure of another rank
		},
	},
}

// horovodLauncher is what starts Horovod's own launcher.
var horovodLauncher = framework.Framework{Commands: []string{"horovodrun"}, LaunchModules: []string{"horovod.runner.launch"}}

// checkHorovod refuses Horovod's launcher, which would start all ranks by ssh from each
// task.
func checkHorovod(spec *proto.JobSpec) error {
	for _, r := range spec.Roles {
		if program := horovodLauncher.Program(framework.Words(spec, r.Name)); program != "" {
			return fmt.Errorf("%s starts the processes of a job on other nodes by ssh, and here the tasks are on their nodes already; leave it and its options out of the command, and say how many tasks there are to be: --worker N -- python train.py", program)
		}
	}
	return nil
}

// horovodEnv returns what horovodrun --gloo gives to the processes that it starts
// (create_slot_env_vars and create_run_env_vars in horovod/runner/gloo_run.py). The
// rendezvous is a store of keys and values, served by HTTP
// (horovod/runner/http/http_server.py); runtime/python/_holdfast/horovod.py serves it in the first
// rank, on its task's port. The host's name is one for each task, as each is a node.
func horovodEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	crossRank, crossSize := 0, 0 // among the processes that have this local rank
	for i, p := range m.Members {
		if p.Processes > m.Local {
			crossSize++
			if i < m.Node {
				crossRank++
			}
		}
	}
	first := m.Members[0]
	env := map[string]string{
		"HOROVOD_HOSTNAME":   m.Task.Name,
		"HOROVOD_RANK":       strconv.Itoa(m.Rank),
		"HOROVOD_SIZE":       strconv.Itoa(m.World()),
		"HOROVOD_LOCAL_RANK": strconv.Itoa(m.Local),
		"HOROVOD_LOCAL_SIZE": strconv.Itoa(m.Locals),
		"HOROVOD_CROSS_RANK": strconv.Itoa(crossRank),
		"HOROVOD_CROSS_SIZE": strconv.Itoa(crossSize),

		"HOROVOD_CONTROLLER":           "gloo",
		"HOROVOD_CPU_OPERATIONS":       "gloo",
		"HOROVOD_GLOO_RENDEZVOUS_ADDR": m.Address(first.Host),
		"HOROVOD_GLOO_RENDEZVOUS_PORT": strconv.Itoa(first.Port),
	}
	maps.Copy(env, tonyEnv(m))
	if m.Interface != "" {
		env["HOROVOD_GLOO_IFACE"] = m.Interface
		env["NCCL_SOCKET_IFNAME"] = m.Interface
	}
	return env
}
