package proc

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/test/bound"
)

// stat makes a line of /proc/PID/stat.
func stat(command, state, parent, flags, code string) string {
	return "17 (" + command + ") " + state + " " + parent + " 16 17 0 -1 " + flags + " 0 0 0 0 150 50 0 0 0 0 0 0 1234" + strings.Repeat(" 0", 29) + " " + code + "\n"
}

func TestParseStat(t *testing.T) {
	for text, want := range map[string]Stat{
		stat("sh", "S", "3", "4194304", "0"):      {State: 'S', Parent: 3, Group: 16, Started: 1234, Flags: 4194304, CPU: 2 * time.Second},
		stat("a) R 1 (b", "Z", "4", "4", "9"):     {State: 'Z', Parent: 4, Group: 16, Started: 1234, Flags: 4, CPU: 2 * time.Second, ExitCode: 9},
		stat("new\nline", "X", "5", "0", "768"):   {State: 'X', Parent: 5, Group: 16, Started: 1234, CPU: 2 * time.Second, ExitCode: 3 << 8},
		stat("sh", "S", "3", "4294967295", "139"): {State: 'S', Parent: 3, Group: 16, Started: 1234, Flags: 1<<32 - 1, CPU: 2 * time.Second, ExitCode: 139},
	} {
		if got, err := ParseStat([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if ended := want.State != 'S'; want.Ended() != ended {
			t.Errorf("%q: ended is %v", text, !ended)
		}
	}
	for _, text := range []string{
		"", "17 (sh", "17 (sh)", "17 (sh) S 3 17 17 0", stat("sh", "SS", "1", "0", "0"),
		stat("sh", "S", "x", "0", "0"), stat("sh", "S", "-1", "0", "0"), stat("sh", "S", "1", "x", "0"), stat("sh", "S", "1", "0", "x"),
	} {
		if got, err := ParseStat([]byte(text)); err == nil {
			t.Errorf("%q was taken for %+v", text, got)
		}
	}
}

func TestFields(t *testing.T) {
	f := Fields("Name:\tcat: x\nTgid:\t120\nSigPnd:\t0000000000000100\nSigCgt:\tx\nRssAnon:\t      12 kB\nflags:\t0100001\n")
	if got := f.Text("Name"); got != "cat: x" {
		t.Errorf("Name is %q", got)
	}
	if f.Text("Nam") != "" || f.Text("Uid") != "" || Fields(nil).Text("Name") != "" {
		t.Error("a field that is not there has a value")
	}
	if f.ThreadGroup() != 120 || Fields(nil).ThreadGroup() != 0 {
		t.Errorf("the thread group is %d", f.ThreadGroup())
	}
	if !f.HasSignal("SigPnd", syscall.SIGKILL) || f.HasSignal("SigPnd", syscall.SIGTERM) || f.HasSignal("SigCgt", syscall.SIGKILL) {
		t.Error("the wrong signals are pending or caught")
	}
	if f.Bytes("RssAnon") != 12<<10 || f.Bytes("Name") != 0 {
		t.Errorf("RssAnon is %d bytes", f.Bytes("RssAnon"))
	}
	if n, ok := f.Number("flags", 8); !ok || n != 0o100001 {
		t.Errorf("flags are %o", n)
	}
}

func TestParseCgroups(t *testing.T) {
	got := ParseCgroups("5:cpu,cpuacct:/y\n1:name=systemd:/a:b\n0::/\nnonsense\n")
	want := []Cgroup{{[]string{"cpu", "cpuacct"}, "/y"}, {[]string{"name=systemd"}, "/a:b"}, {[]string{}, "/"}}
	if !slices.EqualFunc(got, want, func(a, b Cgroup) bool { return slices.Equal(a.Controllers, b.Controllers) && a.Path == b.Path }) {
		t.Errorf("%+v", got)
	}
}

func TestAProcessIsRead(t *testing.T) {
	self := os.Getpid()
	cmd := exec.Command("sleep", "600")
	in, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd.Stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	all, err := Processes()
	if err != nil || !slices.Contains(all, pid) || !slices.Contains(all, self) {
		t.Errorf("%d and %d are not among %v, %v", self, pid, all, err)
	}
	if s, err := ReadStat(pid); err != nil || s.Parent != self || s.Ended() {
		t.Errorf("stat is %+v, %v", s, err)
	}
	line, err := CommandLine(pid)
	for until := time.Now().Add(time.Minute); err == nil && line == nil && time.Now().Before(until); { // it is just beginning
		line, err = CommandLine(pid)
	}
	if err != nil || !slices.Equal(line, cmd.Args) {
		t.Errorf("the command line is %q, %v", line, err)
	}
	if n, err := IO(self); err != nil || n < 1<<10 {
		t.Errorf("this process has read and written %d bytes: %v", n, err)
	}
	if n, err := RSS(self); err != nil || n < 1<<20 {
		t.Errorf("this process has %d bytes of memory, %v", n, err)
	}
	if open, err := Descriptors(pid); err != nil || !slices.Contains(open, 0) {
		t.Errorf("open are %v, %v", open, err)
	}
	if path, err := DescriptorPath(pid, 0); err != nil || path != os.DevNull {
		t.Errorf("standard input is %q, %v", path, err)
	}
	if d, err := ReadDescriptor(pid, 0); err != nil || d.Text("flags") == "" {
		t.Errorf("standard input has %q, %v", d, err)
	}
	if status, err := ReadStatus(pid); err != nil || status.ThreadGroup() != pid {
		t.Errorf("status is %q, %v", status, err)
	}
	if !Traceable(self) {
		t.Error("this process may not trace itself")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if s, err := ReadStat(pid); err == nil {
		t.Errorf("a process that is gone has %+v", s)
	}
	if Traceable(pid) {
		t.Error("a process that is gone may be traced")
	}
}

func TestTheMachineIsRead(t *testing.T) {
	if m, err := ReadMemory(); err != nil || m.Bytes("MemAvailable") <= 0 {
		t.Errorf("memory is %q, %v", m, err)
	}
	if Sysctl("kernel/ostype") != "Linux" || Sysctl("kernel/none") != "" {
		t.Errorf("the kernel is %q", Sysctl("kernel/ostype"))
	}
	if groups, err := Cgroups(); err != nil {
		t.Errorf("cgroups are %v, %v", groups, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(stat("a) R 1 (b", "Z", "4", "4", "9")))
	f.Add([]byte("Tgid:\t1\nSigPnd:\t1\n"))
	f.Add([]byte("5:cpu,cpuacct:/y\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 64)()
		if s, err := ParseStat(b); err == nil && s.Parent < 0 {
			t.Fatalf("%q gives %+v", b, s)
		}
		fields := Fields(b)
		_, _ = fields.Number("SigPnd", 16)
		_ = fields.ThreadGroup()
		_ = fields.Bytes("Tgid")
		_ = ParseCgroups(string(b))
	})
}
