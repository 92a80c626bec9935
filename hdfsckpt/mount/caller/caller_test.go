package caller

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/proc"
)

func TestNewCaller(t *testing.T) {
	status := proc.Fields("Name:\ta\nTgid:\t120\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n")
	of := func(flags, code string) string {
		return "123 (a) b (c) S 1 123 123 0 -1 " + flags + strings.Repeat(" 0", 42) + " " + code + "\n"
	}
	tests := []struct {
		name string
		stat string
		want Caller
	}{
		{"running", of("4194304", "0"), Caller{Group: 120}},
		{"killed", of("4195332", "9"), Caller{Group: 120, Exiting: true, Killed: true}},
		{"core dumped", of("4195332", "139"), Caller{Group: 120, Exiting: true, Killed: true}},
		{"exits with 0", of("4194308", "0"), Caller{Group: 120, Exiting: true}},
		{"exits with 3", of("4194308", "768"), Caller{Group: 120, Exiting: true, Status: 3}},
		{"stopped", of("4194304", "19"), Caller{Group: 120}},
	}
	for _, tt := range tests {
		stat, err := proc.ParseStat([]byte(tt.stat))
		if got := newCaller(stat, status); err != nil || got != tt.want {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

func TestOf(t *testing.T) {
	if c := Of(uint32(os.Getpid())); c.Group != os.Getpid() || c.Exiting || c.Killed {
		t.Errorf("we are %+v", c)
	}
	if c := Of(0); c != (Caller{}) {
		t.Errorf("a thread that we cannot see is %+v", c)
	}
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	if c := Of(uint32(cmd.Process.Pid)); c.Group != cmd.Process.Pid || c.Killed {
		t.Errorf("a running process is %+v", c)
	}
}

func TestWritesTo(t *testing.T) {
	tests := []struct {
		info string
		want bool
	}{
		{"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t7\n", true},
		{"pos:\t0\nflags:\t0100002\nmnt_id:\t29\n", true},
		{"pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t7\n", false},
		{"pos:\t0\nflags:\t0100001\nmnt_id:\t29\nino:\t77\n", false},
		{"", false},
	}
	for _, tt := range tests {
		if got := writesTo(proc.Fields(tt.info), 7); got != tt.want {
			t.Errorf("%q: %v", tt.info, got)
		}
	}
}
