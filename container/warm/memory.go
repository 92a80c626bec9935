package warm

import (
	"fmt"
	"os"

	"holdfast/container/proctree"
	"holdfast/container/sandbox"
	"holdfast/internal/proc"
)

const (
	// reserve is the expected memory of an interpreter.
	reserve = 256 << 20
	// freeShare: one part in so many of a container's limit stays free.
	freeShare = 20
	// freeBytes stay free on the machine where the container has no limit.
	freeBytes = 512 << 20
)

// shortage returns an error if there is not enough memory for an interpreter of size bytes.
// exists is set for one that runs already, and false for one that is to be started. Pages that processes share are counted
// for each, as NodeManagers do (yarn.nodemanager.pmem-check-enabled).
func shortage(box *sandbox.Box, limit, size int64, exists bool) error {
	if limit > 0 {
		used := proctree.RSS(append(box.Processes(), os.Getpid(), box.Pid())...)
		if used+size > limit-limit/freeShare {
			return fmt.Errorf("of the container's %d MB the task uses %d, and it takes %d", limit>>20, used>>20, size>>20)
		}
		return nil
	}
	free := available()
	if free > 0 && exists {
		free += size
	}
	if free > 0 && free < freeBytes+size {
		return fmt.Errorf("this machine has %d MB of memory left, and it takes %d", free>>20, size>>20)
	}
	return nil
}

// available returns the machine's free memory in bytes; 0 if unknown.
func available() int64 {
	memory, _ := proc.ReadMemory()
	return memory.Bytes("MemAvailable")
}
