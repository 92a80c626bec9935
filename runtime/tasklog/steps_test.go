package tasklog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/runtime/tasklog"
	"holdfast/test/bound"
)

func TestSteps(t *testing.T) {
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
		"Step:  12%|#2   | 51/400 [00:12<01:20,  4.33it/s]":                   -1,
		"saved at 12% of step 12%":                                            -1,
		"train_loss_step=0.0496":                                              -1,
		"this was step 12.":                                                   12,
		"Aborting: Step 55077700733709485 cancelled.  Cancelling rendezvous.": -1,
		"epoch 3, step\t#14, accuracy 0.5":                                    14,
		"epoch 3, step #14":                                                   14,
	} {
		got, ok := tasklog.NewStepFinder(tasklog.DefaultSteps).In(line)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("in %q: step %d, want %d", line, got, want)
		}
	}
	own := `it(?:eration)? (\d+)/\d+`
	if err := tasklog.CheckSteps(own); err != nil {
		t.Fatal(err)
	}
	if n, ok := tasklog.NewStepFinder(own).In("iteration 12/500"); n != 12 || !ok {
		t.Errorf("step %d, %v", n, ok)
	}
	for pattern, want := range map[string]string{"(": "no regular expression", "step": "0 groups", `(a)(\d)`: "2 groups"} {
		if err := tasklog.CheckSteps(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", pattern, err)
		}
	}
}

// usual makes a finder of the usual steps.
func usual() *tasklog.StepFinder { return tasklog.NewStepFinder(tasklog.DefaultSteps) }

// steps reads an output as an agent does, which sees lines and, with unfinished, what
// they were while they were written over. It returns the steps that it tells.
func steps(t *testing.T, f *tasklog.StepFinder, output string, unfinished bool) []int64 {
	t.Helper()
	var all []int64
	take := func(n int64, ok bool) {
		if !ok {
			return
		}
		if len(all) > 0 && n < all[len(all)-1] {
			t.Errorf("step %d comes after %d", n, all[len(all)-1])
		}
		if len(all) == 0 || n != all[len(all)-1] {
			all = append(all, n)
		}
	}
	for line := range strings.Lines(output) {
		if unfinished {
			for text := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), "\r") {
				take(f.InBar(text))
			}
		}
		take(f.In(strings.TrimRight(line, "\r\n")))
	}
	return all
}

// TestStepsOfPrograms reads what programs wrote to a pipe: Lightning 2.6 and
// transformers 5.24 in their second attempts, which went on from the steps 40 and 20, and
// Keras 3 in TensorFlow 2.21, with both of its forms, an evaluation and a second training
// after the first.
func TestStepsOfPrograms(t *testing.T) {
	for _, c := range []struct {
		file        string
		first, last int64
		least       int // steps seen
	}{
		{"lightning", 40, 80, 35},
		{"huggingface", 21, 60, 8},
		{"keras", 1, 60, 20},
		{"keras-lines", 20, 60, 3},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "progress", c.file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		f := usual()
		got := steps(t, f, string(b), true)
		if len(got) < c.least || got[0] != c.first || got[len(got)-1] != c.last {
			t.Errorf("%s: steps %v, want %d or more from %d to %d", c.file, got, c.least, c.first, c.last)
		}
		if f.OtherBars() == 0 {
			t.Errorf("%s: nothing was seen of what is no training", c.file)
		}
		if got := steps(t, usual(), string(b), false); len(got) == 0 || got[len(got)-1] != c.last {
			t.Errorf("%s: steps %v in its lines alone, want up to %d", c.file, got, c.last)
		}
	}
}

func TestStepsOfBars(t *testing.T) {
	for _, c := range []struct {
		name, output string
		want         []int64
	}{
		{"imagenet", "Epoch: [2][1/5]\tTime  0.351 ( 0.351)\nEpoch: [2][5/5]\tTime  0.3 ( 0.3)\nTest: [1/5]\tTime  0.1\n *   Acc@1 0.100\nEpoch: [3][1/5]\tTime 1", []int64{11, 15, 16}},
		{"tutorial", "Epoch [1/3], Step [100/600], Loss: 0.2\nEpoch [2/3], Step [100/600], Loss: 0.2", []int64{100, 700}},
		{"tutorial from 0", "Epoch 0/3 Iter 1/10\nEpoch 1/3 Iter 1/10", []int64{1, 11}},
		{"a header over bars", "Epoch 1/2\n 50%|#   | 5/10 [00:01<00:01,  5.0it/s]\n100%|##| 10/10 [00:01<00:00, 5.0it/s]\n100%|##| 4/4 [00:01<00:00, 5.0it/s]\nEpoch 2/2\n 10%|#   | 1/10 [00:01<00:01,  5.0it/s]", []int64{5, 10, 11}},
		{"a validation as long as the training", "Epoch 1:  50%|#   | 5/10 [00:01<00:01,  5.0it/s]\nEpoch 1:  100%|##| 10/10 [00:01<00:01,  5.0it/s]\nEpoch 1:  10%|#   | 1/10 [00:01<00:01,  5.0it/s]\nEpoch 2:  10%|#   | 1/10 [00:01<00:01,  5.0it/s]", []int64{15, 20, 21}},
		{"bars of whatever kind", " 50%|#   | 5/10 [00:01<00:01,  5.0it/s]\nMap:  50%|#   | 500/1000 [00:01<00:01, 5000.0 examples/s]\nEpoch 1:  50%|#   | 320/640 [00:01<00:01, 50 samples/s]", nil},
		{"a trainer that tells its steps", "  Total optimization steps = 1,200\n  1%|   | 6/1200 [00:01<00:01,  5.0it/s]\n 50%|#   | 5/10 [00:01<00:01,  5.0it/s]", []int64{6}},
		{"a trainer that goes on", "  Continuing training from global step 40\n  Total optimization steps = 60\n 70%|#   | 42/60 [00:01<00:01,  5.0it/s]", []int64{40, 42}},
		{"an evaluation before the first log", " 10%|   | 45/400 [00:01<00:01,  5.0it/s]\n100%|##| 5/5 [00:01<00:01,  5.0it/s]\n{'loss': 0.3, 'rewards/chosen': 1.0, 'epoch': 1.2}\n 11%|   | 46/400 [00:01<00:01,  5.0it/s]\n 20%|##| 1/5 [00:01<00:01,  5.0it/s]", []int64{46}},
		{"diffusers", "Steps:  12%|#   | 50/400 [00:01<00:01,  5.0it/s, lr=0.0001, step_loss=0.2]", []int64{50}},
		{"torchrun", "[default0]:Epoch: [1][2/5]\tTime", []int64{7}},
		{"lines that name steps count for more", "Epoch 0:  50%|#   | 4/8 [00:01<00:01,  5.0it/s]\nstep 4\nstep 5\nEpoch 0:  50%|#   | 8/8 [00:01<00:01,  5.0it/s]\nstep 6", []int64{4, 5, 6}},
		{"too many", "Epoch: [999999999999][999999999999/999999999999]", nil},
	} {
		if got := steps(t, usual(), c.output, true); !slices.Equal(got, c.want) {
			t.Errorf("%s: steps %v, want %v", c.name, got, c.want)
		}
	}
}

// TestTotals: how many steps a program makes is what it says, and nothing else.
func TestTotals(t *testing.T) {
	for output, want := range map[string]int64{
		"step 12/500": 500, "step 12 of 500, loss 0.3": 500, "step: 12 / 500": 500, "step 12": 0, "step 12/500\nstep 13": 0,
		"epoch 3, step 12/500":                               0, // of the epoch
		"step 12/500.5":                                      0,
		"Epoch [2/3], Step [100/600], Loss: 0.2":             1800,
		"Epoch 0/3 Iter 1/10":                                0, // there may be 3, or 4
		"Epoch: [2][1/5]\tTime  0.351":                       0,
		"Epoch 2:  50%|#   | 5/10 [00:01<00:01,  5.0it/s]":   0,
		"Epoch 1/2\n 50%|#   | 5/10 [00:01<00:01,  5.0it/s]": 20,
		"  Total optimization steps = 1,200\n  1%|   | 6/1200 [00:01<00:01,  5.0it/s]":          1200,
		"Steps:  12%|#   | 50/400 [00:01<00:01,  5.0it/s, lr=0.0001]":                           400,
		"Steps:  12%|#   | 50/400 [00:01<00:01,  5.0it/s, lr=0.0001]\nstep 50/600\nstep 51/600": 600,
	} {
		f := usual()
		steps(t, f, output, true)
		if f.Total() != want {
			t.Errorf("of %q: %d, want %d", output, f.Total(), want)
		}
	}
	f := tasklog.NewStepFinder(`iteration (\d+)`)
	if f.In("iteration 12/500"); f.Total() != 500 {
		t.Errorf("%d steps in all", f.Total())
	}
	for file, want := range map[string]int64{"huggingface": 60, "keras": 60, "lightning": 0} {
		b, err := os.ReadFile(filepath.Join("testdata", "progress", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		f := usual()
		steps(t, f, string(b), true)
		if f.Total() != want {
			t.Errorf("%s: %d steps in all, want %d", file, f.Total(), want)
		}
	}
}

// TestOtherBars: one that stands still does not move, whatever its clock says.
func TestOtherBars(t *testing.T) {
	f := usual()
	for i, line := range []string{
		"Validation DataLoader 0:  50%|#   | 1/2 [00:01<00:01,  5.0it/s]",
		"Validation DataLoader 0:  50%|#   | 1/2 [00:09<00:01,  5.0it/s]",
		"Validation DataLoader 0:  100%|## | 2/2 [00:09<00:01,  5.0it/s]",
		"nothing of it",
	} {
		f.In(line)
		if want := []int64{1, 1, 2, 2}[i]; f.OtherBars() != want {
			t.Errorf("after %q: %d, want %d", line, f.OtherBars(), want)
		}
	}
	if _, ok := tasklog.NewStepFinder(`iteration (\d+)`).In("Epoch: [2][1/5]"); ok {
		t.Error("the user says what a step looks like, and this is none")
	}
}

func FuzzSteps(f *testing.F) {
	f.Add("Epoch 1/3\n\r\x1b[1m 1/20\x1b[0m \x1b[32m━\x1b[0m 25s 1s/step - loss: 12.9")
	f.Add("Epoch 2:  12%|#  | 5/40 [00:01<00:01,  5.0it/s]\nstep 7")
	f.Fuzz(func(t *testing.T, output string) {
		defer bound.Memory(t, len(output), 64)()
		finder := usual()
		for line := range strings.Lines(output) {
			for _, find := range []func(string) (int64, bool){finder.InBar, finder.In} {
				if n, ok := find(line); ok && (n < 0 || n > 2_000_000_000_000) {
					t.Fatalf("step %d in %q", n, line)
				}
			}
		}
	})
}
