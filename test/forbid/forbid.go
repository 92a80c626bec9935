// Package forbid makes this process's surroundings as narrow as those of some
// containers, for tests.
package forbid

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// numbers are the system calls that can be forbidden.
var numbers = map[string]uint32{
	"seccomp":          unix.SYS_SECCOMP,
	"pidfd_getfd":      unix.SYS_PIDFD_GETFD,
	"process_vm_readv": unix.SYS_PROCESS_VM_READV,
}

// Call has a system call fail with EPERM in this process and all that it starts,
// as a container's seccomp profile does: seccomp(2). It cannot be taken back.
func Call(name string) error {
	number, ok := numbers[name]
	if !ok {
		return fmt.Errorf("no number of %s is known", name)
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the call's number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: number, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("forbidding %s: %w", name, e)
	}
	return nil
}
