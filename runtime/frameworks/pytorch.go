package frameworks

import (
	"encoding/json"
	"maps"
	"strconv"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// pytorch is PyTorch with torch.distributed. All-reduce has no use for a rank that
// comes back alone, so all ranks begin again together.
var pytorch = framework.Framework{
	Name: "pytorch", Title: "PyTorch",
	Modules:       []string{"torch"},
	Commands:      torchLaunchers.Commands,
	LaunchModules: torchLaunchers.LaunchModules,
	Imports:       []string{"torch", "lightning", "pytorch_lightning", "accelerate", "deepspeed"},
	Observers:     observers,
	Rules:         allTogether,
	Defaults:      python,
	Env:           pytorchEnv,
	Shim:          pytorchShim,
	Notes:         torchrunNotes,
	ProcessPerGPU: true, SharedGPUs: true, TellsLaunchers: true,
	Elastic:   true,
	Warm:      "torch",
	ErrorFile: &framework.ErrorFile{Variable: "TORCHELASTIC_ERROR_FILE", Read: readTorchError},
	Failures: framework.Failures{
		Lost:      []string{"ncclRemoteError", "DistNetworkError", "DistStoreError", "RendezvousConnectionError", "RendezvousTimeoutError"},
		Any:       []string{"DistBackendError", "DistError"},
		Launchers: []string{"ChildFailedError"}, // torchrun
		Phrases: []string{ // of gloo and NCCL
			`connection closed by peer`, `connection was closed`, `socket timeout`, `remote process exited`,
			`Watchdog caught collective operation timeout`, `Connect timeout`,
			// Of the store, which before version 2.1 has no exceptions of its own.
			`client socket has timed out`, `seconds waiting for clients`,
		},
	},
	Advice: []framework.Advice{
		{Says: `(?i)CUDA out of memory|OutOfMemoryError: (?:CUDA|HIP)`, Do: framework.UseLessDeviceMemory},
		{
			Says: `Duplicate GPU detected`, // ncclInvalidUsage, as NCCL's last error
			Do:   "Two ranks use the same GPU: let each process use the one of its LOCAL_RANK, and ask for as many GPUs as a task has processes (--worker-gpus, --worker-processes).",
		},
		{
			Says: `(?m)^(?:\[\w+\]: ?)?terminate called without an active exception`,
			Do:   "A thread of native code was still at work when its process ended, as PyTorch's Gloo may be where a program ends without torch.distributed.destroy_process_group(): call it at the program's end.",
		},
	},
}

// pytorchEnv returns what the launchers of PyTorch's programs give to the processes that they
// start, and what they read themselves. INIT_METHOD and WORLD are TonY's
// (PyTorchRuntime.java in tony-core), which has the first worker for INIT_METHOD.
func pytorchEnv(m framework.Member) map[string]string {
	env := torchEnv(m)
	if env == nil {
		return nil
	}
	maps.Copy(env, deepspeedEnv(m))
	maps.Copy(env, tonyEnv(m))
	env["INIT_METHOD"] = "tcp://" + env["MASTER_ADDR"] + ":" + env["MASTER_PORT"]
	env["WORLD"] = env["WORLD_SIZE"]
	return env
}

// pytorchShim returns the settings that runtime/python/_holdfast/deepspeed.py and accelerate.py
// document.
func pytorchShim(*proto.JobSpec) map[string]string {
	return map[string]string{"HOLDFAST_DEEPSPEED_CLUSTER": "1", "HOLDFAST_ACCELERATE_CLUSTER": "1"}
}

// torchEnv returns what torchrun gives to the processes that it starts
// (LocalElasticAgent._start_workers in
// torch/distributed/elastic/agent/server/local_elastic_agent.py), so that a script
// finds itself as under torchrun, and what torchrun itself reads. The ranks meet at
// the first.
//
// NODE_RANK is for Lightning, which takes the number of the node from it, or from
// GROUP_RANK, where it does not see torchelastic (LightningEnvironment and
// TorchElasticEnvironment in lightning/fabric/plugins/environments).
//
// TORCHELASTIC_RUN_ID makes torch.distributed.is_torchelastic_launched true. PyTorch
// itself does nothing else with it; Lightning then takes rank and world from the
// environment, and says so where they differ from its num_nodes and devices.
// TORCHELASTIC_USE_AGENT_STORE is not set: no agent serves the store, so rank 0 does
// (_create_c10d_store in torch/distributed/rendezvous.py).
func torchEnv(m framework.Member) map[string]string {
	if m.Observer {
		return nil
	}
	env := map[string]string{
		"MASTER_ADDR":      m.Members[0].Host,
		"MASTER_PORT":      strconv.Itoa(m.Members[0].Port),
		"WORLD_SIZE":       strconv.Itoa(m.World()),
		"RANK":             strconv.Itoa(m.Rank),
		"LOCAL_WORLD_SIZE": strconv.Itoa(m.Locals),
		"LOCAL_RANK":       strconv.Itoa(m.Local),
		"NODE_RANK":        strconv.Itoa(m.Node),
		"GROUP_RANK":       strconv.Itoa(m.Node),
		"GROUP_WORLD_SIZE": strconv.Itoa(len(m.Members)),
		"ROLE_NAME":        "default", // torchrun --role
		"ROLE_RANK":        strconv.Itoa(m.Rank),
		"ROLE_WORLD_SIZE":  strconv.Itoa(m.World()),

		"TORCHELASTIC_RUN_ID":        m.Job,
		"TORCHELASTIC_RESTART_COUNT": strconv.Itoa(m.Generation),
	}
	if m.Locals > 1 { // or each would have threads for all cores
		env["OMP_NUM_THREADS"] = "1"
	}
	if m.Interface != "" { // gloo's, TensorPipe's and NCCL's
		for _, name := range []string{"GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"} {
			env[name] = m.Interface
		}
	}
	maps.Copy(env, torchrunEnv(m))
	return env
}

// readTorchError reads the file in which torch.distributed.elastic writes the error
// that ended a process, or the first of those that torchrun has started
// (torch/distributed/elastic/multiprocessing/errors/error_handler.py).
func readTorchError(content []byte) (atMS int64, text string) {
	var file struct {
		Message struct {
			Message   string `json:"message"`
			ExtraInfo struct {
				Stack     string `json:"py_callstack"`
				Timestamp string `json:"timestamp"` // seconds
			} `json:"extraInfo"`
		} `json:"message"`
	}
	if json.Unmarshal(content, &file) != nil || file.Message.Message == "" {
		return 0, ""
	}
	seconds, err := strconv.ParseInt(file.Message.ExtraInfo.Timestamp, 10, 64)
	if err != nil {
		return 0, ""
	}
	return seconds * 1000, file.Message.ExtraInfo.Stack + "\n" + file.Message.Message
}
