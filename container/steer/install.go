package steer

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data.
const (
	dataNumber = 0
	dataArch   = 4
)

// Install installs the filter on the calling thread, which everything that it forks inherits,
// and returns the descriptor for notifications of connect(2) and bind(2).
// The caller must have locked the goroutine to its thread.
func Install() (int, error) {
	if err := supported(); err != nil {
		return -1, err
	}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: dataArch},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: auditArch, Jf: 4},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: dataNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CONNECT, Jt: 1},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_BIND, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	install := func() (int, syscall.Errno) {
		var fd uintptr
		var e syscall.Errno
		for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
			fd, _, e = syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
			if e != syscall.EINVAL {
				break
			}
		}
		return int(fd), e
	}
	fd, e := install()
	if e == syscall.EACCES {
		// Without CAP_SYS_ADMIN in its user namespace, a thread must set no_new_privs
		// first: seccomp(2).
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return -1, fmt.Errorf("setting no_new_privs for steering: %w", err)
		}
		fd, e = install()
	}
	switch e {
	case 0:
		unix.CloseOnExec(fd)
		return fd, nil
	case syscall.EBUSY:
		return -1, fmt.Errorf("installing the steering filter: another supervisor listens to this process already: %w", e)
	default:
		return -1, fmt.Errorf("installing the steering filter (seccomp user notification, Linux 5.0): %w", e)
	}
}

// supported checks that the kernel has pidfd_getfd(2).
func supported() error {
	p, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("steering needs pidfd_open (Linux 5.3): %w", err)
	}
	defer unix.Close(p)
	fd, err := unix.PidfdGetfd(p, p, 0)
	if err != nil {
		return fmt.Errorf("steering needs pidfd_getfd (Linux 5.6): %w", err)
	}
	return unix.Close(fd)
}

// sample is a value that every process of this program has in memory, at Sample.
var sample = [8]byte{'h', 'o', 'l', 'd', 'f', 'a', 's', 't'}

// Sample returns the address of a value that Check knows.
func Sample() uint64 { return uint64(uintptr(unsafe.Pointer(&sample))) }

// Check checks that this process may do to another what a Supervisor does to a task: read its
// memory and duplicate its descriptors, which security modules (Yama's ptrace_scope) and the
// seccomp profiles of containers may forbid. The other process must run this program and have
// descriptor 0; sample is what Sample returns there.
func Check(pid int, at uint64) error {
	b := make([]byte, len(sample))
	if err := readMemory(pid, uintptr(at), b); err != nil {
		return fmt.Errorf("steering needs to read its task's memory (process_vm_readv): %w", err)
	}
	if [8]byte(b) != sample {
		return fmt.Errorf("steering needs to read its task's memory, and read %q there", b)
	}
	fd, err := duplicate(pid, 0)
	if err != nil {
		return fmt.Errorf("steering needs its task's sockets (pidfd_getfd): %w", err)
	}
	return unix.Close(fd)
}
