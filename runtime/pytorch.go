package runtime

import (
	"encoding/json"
	"strconv"

	"holdfast/proto"
)

// pytorch is PyTorch with torch.distributed. All-reduce has no use for a rank that
// comes back alone, so all ranks begin again together.
var pytorch = Framework{
	Name: "pytorch", Title: "PyTorch",
	Modules:   []string{"torch"},
	Observers: observers,
	Rules:     allTogether,
	Defaults:  python,
	Env:       torchEnv,
	ErrorFile: &ErrorFile{Variable: "TORCHELASTIC_ERROR_FILE", Read: readTorchError},
	Failures: Failures{
		Lost: []string{"ncclRemoteError", "DistNetworkError", "DistStoreError"},
		Any:  []string{"DistBackendError", "DistError"},
		Phrases: []string{ // of gloo and NCCL
			`connection closed by peer`, `connection was closed`, `socket timeout`, `remote process exited`,
			`Watchdog caught collective operation timeout`, `Connect timeout`,
		},
	},
	Advice: []Advice{{`(?i)CUDA out of memory|OutOfMemoryError: (?:CUDA|HIP)`, useLessDeviceMemory}},
}

// allTogether are the rules of a framework whose tasks are ranks of one group.
func allTogether(*proto.JobSpec, string) (proto.LossRule, proto.CompletionRule) {
	return proto.LossRule_LOSS_RULE_ALL, proto.CompletionRule_COMPLETION_RULE_REQUIRED
}

// torchEnv returns what the rendezvous env:// of torch.distributed reads; the ranks
// meet at the first.
func torchEnv(m Member) map[string]string {
	if m.Observer {
		return nil
	}
	return map[string]string{
		"MASTER_ADDR":      m.Members[0].Host,
		"MASTER_PORT":      strconv.Itoa(m.Members[0].Port),
		"WORLD_SIZE":       strconv.Itoa(m.World()),
		"RANK":             strconv.Itoa(m.Rank),
		"LOCAL_WORLD_SIZE": strconv.Itoa(m.Locals),
		"LOCAL_RANK":       strconv.Itoa(m.Local),
	}
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
