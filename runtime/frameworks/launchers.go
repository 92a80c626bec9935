package frameworks

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// torchLaunchers are what starts the processes of a task with PyTorch.
var torchLaunchers = framework.Framework{
	Commands:      []string{"torchrun", "accelerate", "accelerate-launch", "deepspeed"},
	LaunchModules: []string{"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"},
}

// torchrunEnv returns the options of torchrun that its command does not give: it
// reads PET_ and the name of the option (torch/distributed/argparse_util.py,
// torch/distributed/run.py). Every container is a node.
//
// is_host decides who serves the store of the rendezvous c10d. Otherwise torchrun
// compares the host in --rdzv-endpoint with gethostname, which no task's name equals
// (_matches_machine_hostname in torch/distributed/elastic/rendezvous/utils.py).
//
// TORCH_DISABLE_SHARE_RDZV_TCP_STORE has the processes of each round of c10d meet in a store
// of their own. Otherwise those that torchrun starts again find addresses of the round before
// in the store of its agents (next_rendezvous in
// torch/distributed/elastic/rendezvous/dynamic_rendezvous.py), and wait for ever.
func torchrunEnv(m framework.Member) map[string]string {
	local := m.Task.Name
	if m.Forwarded { // peers come on ports that torchrun chooses
		local = m.Host
	}
	return map[string]string{
		"PET_NNODES":         strconv.Itoa(len(m.Members)),
		"PET_NODE_RANK":      strconv.Itoa(m.Node),
		"PET_NPROC_PER_NODE": strconv.Itoa(m.Launched),
		"PET_MASTER_ADDR":    m.Members[0].Host,
		"PET_MASTER_PORT":    strconv.Itoa(m.Members[0].Port),
		"PET_LOCAL_ADDR":     local,
		"PET_RDZV_ID":        fmt.Sprintf("%s-%d", m.Job, m.Generation),
		"PET_RDZV_CONF":      "is_host=" + strconv.FormatBool(m.Node == 0),

		"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
	}
}

// restartsItself is the note about a launcher of PyTorch that may wait for ever
// (pytorch#135712): docs/frameworks.md says more.
const restartsItself = "with PyTorch 2.5 and newer, torchrun waits for ever where it starts its processes again by itself and they meet by the static rendezvous: " +
	"add --rdzv-backend=c10d --rdzv-endpoint={master_addr}:{master_port}, or leave --max-restarts out, and all ranks are started again from here"

// torchrunNotes warns of torchrun with --max-restarts and without the rendezvous c10d. Its
// options may be variables of the job's environment, too.
func torchrunNotes(spec *proto.JobSpec) []string {
	for _, r := range spec.Roles {
		words := framework.Words(spec, r.Name)
		if _, observer := observers[r.Name]; observer || torchLaunchers.Program(words) == "" || r.Count*max(1, r.Processes) < 2 {
			continue
		}
		options := map[string]string{"max-restarts": spec.Env["PET_MAX_RESTARTS"], "rdzv-backend": spec.Env["PET_RDZV_BACKEND"]}
		words = strings.Fields(strings.Join(words, " ")) // a shell's, too
		for i, word := range words {
			if strings.HasSuffix(word, ".py") { // what follows is the script's
				break
			}
			name, value, given := strings.Cut(strings.TrimPrefix(word, "--"), "=")
			if !given && i+1 < len(words) {
				value = words[i+1]
			}
			options[strings.ReplaceAll(name, "_", "-")] = value
		}
		restarts, _ := strconv.Atoi(options["max-restarts"])
		if _, c10d := options["standalone"]; restarts > 0 && !c10d && options["rdzv-backend"] != "c10d" {
			return []string{restartsItself}
		}
	}
	return nil
}

// deepspeedEnv returns what DeepSpeed's launcher is told, by
// runtime/python/_holdfast/deepspeed.py, beside the variables of torchEnv: the tasks, as
// NAME:PROCESSES. The list of a job that is too large for a variable is left out.
func deepspeedEnv(m framework.Member) map[string]string {
	const name = "HOLDFAST_DEEPSPEED_HOSTS"
	var hosts []string
	for _, p := range m.Members {
		hosts = append(hosts, fmt.Sprintf("%s:%d", p.Host, p.Launched))
	}
	list := strings.Join(hosts, ",")
	if !framework.Fits(name, list) {
		return nil
	}
	return map[string]string{name: list}
}
