package runtime_test

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
)

func TestSteps(t *testing.T) {
	spec := &proto.JobSpec{Command: []string{"x"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}}
	if err := runtime.Complete(spec); err != nil {
		t.Fatal(err)
	}
	f := runtime.NewStepFinder(spec.Progress)
	for line, want := range map[string]int64{
		"step 20 loss 0.017485":           20,
		"Step: 7":                         7,
		"INFO loss = 0.3, step = 1200":    1200,
		"global_step=5":                   5,
		"worker 0 begins at step 3":       3,
		"step 1 ... step 2":               2,
		"global_step/sec: 50":             -1,
		"--steps=300":                     -1,
		"footstep 9":                      -1,
		"step 99999999999999999999999999": -1,
		"nothing":                         -1,
		"Aborting: Step 55077700733709485 cancelled.  Cancelling rendezvous.": -1,
		"epoch 3, step\t#14, accuracy 0.5":                                    14,
		"epoch 3, step #14":                                                   14,
	} {
		got, ok := f.In(line)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("in %q: step %d, want %d", line, got, want)
		}
	}
	spec.Progress = `it(?:eration)? (\d+)/\d+`
	if err := runtime.Complete(spec); err != nil {
		t.Fatal(err)
	}
	if n, ok := runtime.NewStepFinder(spec.Progress).In("iteration 12/500"); n != 12 || !ok {
		t.Errorf("step %d, %v", n, ok)
	}
	for pattern, want := range map[string]string{"(": "no regular expression", "step": "0 groups", `(a)(\d)`: "2 groups"} {
		spec.Progress = pattern
		if err := runtime.Complete(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}
