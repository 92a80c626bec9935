package mount

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// Flags of a task, from include/linux/sched.h.
const (
	pfExiting  = 0x4
	pfSignaled = 0x400
)

// caller is what /proc tells of the thread that sent a request.
type caller struct {
	group   int  // its process (thread group); 0 if not known
	exiting bool // its descriptors are being closed by exit, not by close(2)
	killed  bool // it is ending, or about to, by a signal
	status  int  // its exit status, if it exits by itself
}

// callerOf looks a thread up. A caller in a pid namespace that we cannot see
// into has number 0, and one that is gone has no directory: both are unknown,
// and count as alive.
func callerOf(pid uint32) caller {
	if pid == 0 {
		return caller{}
	}
	dir := "/proc/" + strconv.Itoa(int(pid))
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return caller{}
	}
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return caller{}
	}
	c, err := parseCaller(stat, status)
	if err != nil {
		return caller{}
	}
	// The exit code reads as 0 to those who may not trace the process. Then a
	// pending SIGKILL is all there is to go by; it is also how exit_group(2)
	// ends the other threads, so it may mistake an exit for a kill, which
	// loses less than the opposite.
	if !c.killed && c.status == 0 && sigkillPending(stat, status) {
		if fd, err := os.Open(dir + "/io"); err != nil {
			c.killed = true
		} else {
			_, err = fd.Read(make([]byte, 1))
			fd.Close()
			c.killed = err != nil && !os.IsNotExist(err)
		}
	}
	return c
}

// groupOf finds the process that a thread belongs to; 0 if unknown.
func groupOf(pid uint32) int {
	if pid == 0 {
		return 0
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(field(status, "Tgid:")))
	return n
}

// parseCaller reads the two files (proc_pid_stat(5), proc_pid_status(5)). The
// last field of stat, exit_code, is the whole process's as soon as its end is
// decided, by a signal (low 7 bits) or by exit_group (next 8 bits): fs/proc/
// array.c, do_task_stat, SIGNAL_GROUP_EXIT.
func parseCaller(stat, status []byte) (caller, error) {
	flags, code, err := statFields(stat)
	if err != nil {
		return caller{}, err
	}
	group, err := strconv.Atoi(string(field(status, "Tgid:")))
	if err != nil {
		return caller{}, fmt.Errorf("no Tgid in status: %w", err)
	}
	return caller{
		group:   group,
		exiting: flags&pfExiting != 0,
		killed:  code&0x7f != 0 && !stops(code&0x7f),
		status:  code >> 8 & 0xff,
	}, nil
}

// stops tells the signals that stop a process: the same field holds theirs
// while it is stopped.
func stops(sig int) bool {
	switch syscall.Signal(sig) {
	case syscall.SIGSTOP, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU:
		return true
	}
	return false
}

func statFields(stat []byte) (flags, code int, err error) {
	// The second field is a name in brackets that may contain anything.
	i := bytes.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, 0, fmt.Errorf("no name in stat %q", stat)
	}
	f := bytes.Fields(stat[i+1:])
	const flagsField, codeField = 9 - 3, 52 - 3
	if len(f) <= codeField {
		return 0, 0, fmt.Errorf("stat has %d fields after the name", len(f))
	}
	if flags, err = strconv.Atoi(string(f[flagsField])); err != nil {
		return 0, 0, fmt.Errorf("flags in stat: %w", err)
	}
	if code, err = strconv.Atoi(string(f[codeField])); err != nil {
		return 0, 0, fmt.Errorf("exit code in stat: %w", err)
	}
	return flags, code, nil
}

func sigkillPending(stat, status []byte) bool {
	const sigkill = 1 << (9 - 1)
	flags, _, err := statFields(stat)
	if err == nil && flags&pfSignaled != 0 {
		return true
	}
	for _, key := range []string{"SigPnd:", "ShdPnd:"} {
		if v, err := strconv.ParseUint(string(field(status, key)), 16, 64); err == nil && v&sigkill != 0 {
			return true
		}
	}
	return false
}

func field(status []byte, key string) []byte {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			return bytes.TrimSpace(rest)
		}
	}
	return nil
}
