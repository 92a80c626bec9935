package e2e

import (
	"path/filepath"
	"testing"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/test/pyenv"
)

// TestRanksOnHostsOfTheirOwn: the ranks of PyTorch find each other on hosts whose own
// name stands for a loopback address, as Debian's installer leaves it: gloo listens on
// the address of that name, and tells it to its peers.
func TestRanksOnHostsOfTheirOwn(t *testing.T) {
	training.enter(t)
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../examples/pytorch-ddp/train.py")
	if err != nil {
		t.Fatal(err)
	}
	train := []string{script, "--steps", "20"}
	for name, test := range map[string]struct {
		forbid string // a system call that agents may not use
		words  []string
	}{
		"steered":   {"", nil},
		"forwarded": {"pidfd_getfd", nil},
		"torchrun":  {"", []string{"-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLAN(t, 2, false)
			l.forbid = test.forbid
			spec := &proto.JobSpec{
				// Where connections are forwarded, PyTorch's store can be reset by one that
				// came too early.
				Name: "ranks", Local: true, Restarts: 3, Framework: "pytorch", Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}},
				Command: append(append([]string{python}, test.words...), train...),
			}
			j := l.run(spec, core.Limits{}, func(_ string, asks int) int { return asks % 2 })
			s := j.until("the end", func(s *proto.JobStatus) bool { return s.State.Done() })
			if s.State != proto.JobState_JOB_STATE_SUCCEEDED {
				t.Errorf("the job ended as %s (%s)\n%s", s.State, s.Why, j.logs())
			}
		})
	}
}
