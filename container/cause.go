package container

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/proto"
	"holdfast/runtime"
)

// stackTime is what processes get to write where they stand, before they are stopped.
const stackTime = 500 * time.Millisecond

// askForStacks has those processes write where they stand that do so at SIGQUIT
// (Python with the shim, Java). It tells whether there are any.
func askForStacks(processes []int) bool {
	asked := false
	for _, pid := range processes {
		if catches(pid, syscall.SIGQUIT) {
			asked = syscall.Kill(pid, syscall.SIGQUIT) == nil || asked
		}
	}
	return asked
}

// catches tells whether a process has a handler for a signal: SigCgt of proc(5).
func catches(pid int, signal syscall.Signal) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if mask, ok := strings.CutPrefix(line, "SigCgt:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && n&(1<<(signal-1)) != 0
		}
	}
	return false
}

// errorFileVariable names the file in which torch.distributed.elastic writes the error
// that ended a process, or the first of those that torchrun has started
// (torch/distributed/elastic/multiprocessing/errors/error_handler.py).
const errorFileVariable = "TORCHELASTIC_ERROR_FILE"

const errorFileMost = 1 << 20 // bytes of it that are read

// explain says of an end by which error it came, from what the attempt has written.
func (a *attempt) explain(e *proto.Exited, heard []string) {
	if a.framework == "" || e.Code == 0 && e.Signal == 0 {
		return
	}
	v := runtime.Explain(a.framework, heard)
	if at, text := elasticError(a.errorFile); text != "" {
		v = runtime.Explain(a.framework, strings.Split(text, "\n"))
		e.AtUnixMs = at
	}
	switch aborted := syscall.Signal(e.Signal) == syscall.SIGABRT; {
	case e.Code > 0 || aborted:
		e.PeerLost, e.Advice, e.Error = v.PeerLost, v.Advice, v.Error
		if aborted && e.Error == "" {
			e.Error = runtime.LastLine(heard)
		}
	case e.Stopped && !v.PeerLost: // it may have failed before that
		e.Error = v.Error
	}
}

// elasticError reads such a file: the error, with what it said of itself, and when it
// was; "" if there is none.
func elasticError(name string) (atMS int64, text string) {
	f, err := os.Open(name)
	if err != nil {
		return 0, ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, errorFileMost))
	if err != nil {
		return 0, ""
	}
	var file struct {
		Message struct {
			Message   string `json:"message"`
			ExtraInfo struct {
				Stack     string `json:"py_callstack"`
				Timestamp string `json:"timestamp"` // seconds
			} `json:"extraInfo"`
		} `json:"message"`
	}
	if json.Unmarshal(b, &file) != nil || file.Message.Message == "" {
		return 0, ""
	}
	seconds, err := strconv.ParseInt(file.Message.ExtraInfo.Timestamp, 10, 64)
	if err != nil {
		return 0, ""
	}
	return seconds * 1000, file.Message.ExtraInfo.Stack + "\n" + file.Message.Message
}
