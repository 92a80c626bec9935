package faults

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"holdfast/proto"
)

// sleeper starts a process that a fault can strike.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// injected strikes at the one task of a job, of which a process is known by its number.
func injected(t *testing.T, fault string, task *proto.TaskStatus) hit {
	t.Helper()
	r, err := Of(fault)
	if err != nil {
		t.Fatal(err)
	}
	h, err := r[0].inject(&job{rng: rand.New(rand.NewPCG(1, 1))}, &proto.JobStatus{Tasks: []*proto.TaskStatus{task}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestWhatIsKilledMustEnd: a round is not over before the process that it struck has ended.
func TestWhatIsKilledMustEnd(t *testing.T) {
	p := sleeper(t)
	h := injected(t, "kill ps", &proto.TaskStatus{Task: "ps-0", Role: "ps", Pid: int32(p.Process.Pid), AgentPid: 1})
	if h.missed || len(h.gone) != 1 || h.gone[0].pid != p.Process.Pid || h.gone[0].since == "" {
		t.Fatalf("what must end is %+v", h)
	}
	_ = p.Wait()
	if h.gone[0].lives() {
		t.Error("it has not ended")
	}
}

// TestWhatIsPausedStands: a pause has begun when it is told of.
func TestWhatIsPausedStands(t *testing.T) {
	p := sleeper(t)
	h := injected(t, "pause ps", &proto.TaskStatus{Task: "ps-0", Role: "ps", Pid: int32(p.Process.Pid), AgentPid: 1})
	if h.missed || state(p.Process.Pid) != "T" {
		t.Errorf("%+v, and it is in the state %q", h, state(p.Process.Pid))
	}
	if err := h.heal(t.Context()); err != nil || state(p.Process.Pid) == "T" {
		t.Errorf("healed (%v), it is in the state %q", err, state(p.Process.Pid))
	}
}

// TestAFaultThatStrikesNothingIsTold: neither one that has ended nor one that was never there
// is lost.
func TestAFaultThatStrikesNothingIsTold(t *testing.T) {
	p := exec.CommandContext(t.Context(), "true")
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	ended := p.Process.Pid
	if _, err := os.Stat("/proc/" + strconv.Itoa(ended)); err == nil {
		t.Fatalf("the number %d is that of another process already", ended)
	}
	for _, fault := range []string{"kill ps", "pause ps", "kill ps agent", "pause ps agent"} {
		for _, pid := range []int32{0, int32(ended)} {
			if h := injected(t, fault, &proto.TaskStatus{Task: "ps-0", Role: "ps", Pid: pid, AgentPid: pid}); !h.missed {
				t.Errorf("%s of process %d: %+v", fault, pid, h)
			}
		}
	}
}

func TestLivingProcesses(t *testing.T) {
	if own := processes(os.Getpid()); len(own) != 1 || !own[0].lives() {
		t.Errorf("this process is among the living as %+v", own)
	}
	p := sleeper(t)
	known := processes(p.Process.Pid)
	_ = p.Process.Kill()
	_ = p.Wait()
	if len(known) != 1 || known[0].lives() || len(processes(p.Process.Pid)) != 0 {
		t.Errorf("%+v lives, and was killed", known)
	}
	if other := (process{os.Getpid(), known[0].since + "1"}); other.lives() {
		t.Error("a process is taken for another one of its number")
	}
}
