// Package proc reads what the kernel says of processes and of this machine in
// /proc, proc(5), and what this process's user is called. No other package parses those files.
//
// Processes end while they are looked at: an error means that nothing is known, and
// what was read may be out of date at once. Every function that takes a process also
// takes a thread, by its number.
//
// github.com/prometheus/procfs does not read what is needed of processes that end
// (the exit code in stat, the sets of signals in status), so that the same files would
// have a second parser beside it.
package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// file returns a file of a process.
func file(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// Processes returns the numbers of all processes.
func Processes() ([]int, error) { return numbers("/proc") }

// numbers returns the entries of a directory that are numbers; after an error, those
// that were read before.
func numbers(dir string) ([]int, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	found := make([]int, 0, len(names))
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			found = append(found, n)
		}
	}
	return found, err
}

// Stat is a part of /proc/PID/stat, proc_pid_stat(5).
type Stat struct {
	State  byte // 'R', 'S', …
	Parent int
	Group  int           // its process group
	Flags  uint32        // PF_* of include/linux/sched.h
	CPU    time.Duration // user and system time, without those of children
	// Started is when it began, in ticks since the system did: with its number, it tells a
	// process from a later one of that number.
	Started uint64
	// ExitCode is as waitpid(2) reports it: of the whole process once its end is
	// decided, by a signal (low 7 bits) or by exit_group (next 8 bits); while the
	// process is stopped, it holds the signal that did that (fs/proc/array.c,
	// do_task_stat). It is 0 for those who may not trace the process.
	ExitCode int
}

// Ended reports whether the process has ended and only waits for its parent to take
// note.
func (s Stat) Ended() bool { return s.State == 'Z' || s.State == 'X' }

// ReadStat reads /proc/PID/stat.
func ReadStat(pid int) (Stat, error) {
	b, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return Stat{}, err
	}
	return ParseStat(b)
}

// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every architecture
// that Go runs on.
const tick = time.Second / 100

// ParseStat parses a line of /proc/PID/stat.
func ParseStat(b []byte) (Stat, error) {
	// The second field, the command in parentheses, may hold anything, parentheses
	// and newlines too: the last one ends it.
	n := bytes.LastIndexByte(b, ')')
	if n < 0 {
		return Stat{}, fmt.Errorf("no command in stat %q", b)
	}
	var s Stat
	b, n = b[n+1:], 2
	for f := range bytes.FieldsSeq(b) {
		var err error
		var number int64
		switch n++; n {
		case 3:
			if s.State = f[0]; len(f) != 1 {
				err = strconv.ErrSyntax
			}
		case 4, 5, 9, 14, 15, 22, 52:
			if number, err = strconv.ParseInt(string(f), 10, 64); number < 0 {
				err = strconv.ErrRange
			}
		}
		if err != nil {
			return Stat{}, fmt.Errorf("field %d of stat, %q: %w", n, f, err)
		}
		switch n {
		case 4:
			s.Parent = int(number)
		case 5:
			s.Group = int(number)
		case 9:
			s.Flags = uint32(number)
		case 14, 15:
			s.CPU += time.Duration(number) * tick
		case 22:
			s.Started = uint64(number)
		case 52:
			s.ExitCode = int(number)
			return s, nil
		}
	}
	return Stat{}, fmt.Errorf("stat has %d fields instead of 52", n)
}

// Fields is the content of a file whose lines are "Name: value".
type Fields []byte

// ReadStatus reads /proc/PID/status.
func ReadStatus(pid int) (Fields, error) { return os.ReadFile(file(pid, "status")) }

// ReadMemory reads /proc/meminfo.
func ReadMemory() (Fields, error) { return os.ReadFile("/proc/meminfo") }

// ReadDescriptor reads what is known of an open descriptor, /proc/PID/fdinfo/FD.
func ReadDescriptor(pid, fd int) (Fields, error) {
	return os.ReadFile(file(pid, "fdinfo/"+strconv.Itoa(fd)))
}

// Text returns the value of a field; "" if there is none.
func (f Fields) Text(name string) string {
	for line := range bytes.Lines(f) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok && len(rest) > 0 && rest[0] == ':' {
			return string(bytes.TrimSpace(rest[1:]))
		}
	}
	return ""
}

// Number returns the value of a field that is a number in a base; ok is false if it
// is not, or if there is no such field.
func (f Fields) Number(name string, base int) (n uint64, ok bool) {
	n, err := strconv.ParseUint(f.Text(name), base, 64)
	return n, err == nil
}

// Bytes returns the value of a field in kB, as bytes; 0 if there is none.
func (f Fields) Bytes(name string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(f.Text(name), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}

// ThreadGroup returns the process of the thread whose status this is; 0 if unknown.
func (f Fields) ThreadGroup() int {
	n, _ := f.Number("Tgid", 10)
	return int(n)
}

// HasSignal reports whether a signal is in a field that is a set of them, such as
// SigCgt.
func (f Fields) HasSignal(name string, signal syscall.Signal) bool {
	set, ok := f.Number(name, 16)
	return ok && set&(1<<(signal-1)) != 0
}

// IO returns the bytes that a process has read and written, including those of children that
// it has waited for. It counts read(2), write(2) and their variants on any descriptor, but
// not send(2) and recv(2). It fails without the permission to trace the process.
func IO(pid int) (int64, error) {
	b, err := os.ReadFile(file(pid, "io"))
	if err != nil {
		return 0, err
	}
	read, _ := Fields(b).Number("rchar", 10)
	written, _ := Fields(b).Number("wchar", 10)
	return int64(read + written), nil
}

// RSS returns the resident memory of a process in bytes, including pages that it
// shares with others.
func RSS(pid int) (int64, error) {
	b, err := os.ReadFile(file(pid, "statm"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), " ")
	resident, _, _ := strings.Cut(rest, " ")
	pages, err := strconv.ParseInt(resident, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("statm is %q: %w", b, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// CommandLine returns the arguments that a process was started with; none if it has
// ended, or where execve(2) has just begun it: what closes on exec is closed before the
// arguments are there (fs/exec.c, begin_new_exec; fs/binfmt_elf.c, create_elf_tables).
func CommandLine(pid int) ([]string, error) {
	b, err := os.ReadFile(file(pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00"), nil
}

// Descriptors returns the numbers of a process's open descriptors. A process that
// exits has none any more (kernel/exit.c, exit_files).
func Descriptors(pid int) ([]int, error) { return numbers(file(pid, "fd")) }

// DescriptorPath returns the name of what a descriptor is open on, or another word
// for what has none, such as socket:[1]. It does not ask the file system.
func DescriptorPath(pid, fd int) (string, error) {
	return os.Readlink(file(pid, "fd/"+strconv.Itoa(fd)))
}

// Traceable reports whether this process may read of another what only those may who
// may trace it (ptrace(2), PTRACE_MODE_READ_FSCREDS), its exit code among them.
func Traceable(pid int) bool {
	_, err := os.ReadFile(file(pid, "io"))
	return err == nil
}

// SecurityLabel returns what a security module such as SELinux has labelled this
// process with; "" if there is none.
func SecurityLabel() string {
	b, _ := os.ReadFile("/proc/self/attr/current")
	return strings.Trim(string(b), "\x00\n")
}

// Sysctl returns a parameter of the kernel, by its path in /proc/sys, proc_sys(5);
// "" if this kernel has none of that name.
func Sysctl(name string) string {
	b, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(b))
}

// Cgroup is a control group that a process is in, cgroups(7).
type Cgroup struct {
	Controllers []string // of version 1; empty for version 2
	Path        string   // from the root of its hierarchy
}

// Cgroups returns the control groups of this process.
func Cgroups() ([]Cgroup, error) {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return ParseCgroups(string(b)), nil
}

// ParseCgroups parses /proc/PID/cgroup: lines of ID:CONTROLLERS:PATH.
func ParseCgroups(text string) []Cgroup {
	var found []Cgroup
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(f) != 3 {
			continue
		}
		found = append(found, Cgroup{Controllers: strings.FieldsFunc(f[1], func(r rune) bool { return r == ',' }), Path: f[2]})
	}
	return found
}
