package tasklog_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/runtime/tasklog"
	"holdfast/test/bound"
)

func TestScalars(t *testing.T) {
	for line, want := range map[string]string{
		"INFO:tensorflow:loss = 0.3, step = 1200 (0.5 sec)": "loss=0.3",
		"loss: 0.12":            "loss=0.12",
		"step 20 loss 0.017485": "loss=0.017485",
		"Epoch 3 Loss: 1":       "loss=1",
		"20/20 - 3s - 133ms/step - loss: 0.5 - accuracy: 0.9 - val_loss: 1.8176":     "loss=0.5 accuracy=0.9 val_loss=1.8176",
		"{'loss': 0.5, 'grad_norm': '4.013', 'learning_rate': 3e-05, 'epoch': 1.25}": "loss=0.5 grad_norm=4.013 learning_rate=3e-05",
		`{"train/loss": -2}`: "train/loss=-2",
		"Epoch 3:  12%|#2   | 5/40 [00:01<00:01, 5.0it/s, v_num=0, train_loss_step=0.0496, loss=0.5]": "train_loss_step=0.0496 loss=0.5",
		"Epoch: [2][1/5]\tTime  0.351 ( 0.351)\tLoss 6.9e+00 (7.0e+00)\tAcc@1  10.00 ( 8.33)":         "loss=6.9 acc@1=10",
		"loss: tensor(0.25, grad_fn=<MseLossBackward0>) reward np.float32(2.0)":                       "loss=0.25 reward=2",
		"loss = nan":                "loss=NaN",
		"loss=-inf":                 "loss=-Inf",
		"[default0]:loss: 0.5":      "loss=0.5",
		"Test accuracy: 91.5%":      "accuracy=91.5",
		"The loss was 0.5.":         "",
		"loss: 0.5.":                "loss=0.5",
		"loss 3 workers":            "",
		"loss of 2.5 GB":            "",
		"global_step=5 port: 20001": "",
		"Loss:  12%|##  | 5/40":     "",
		"loss: 12ms":                "",
		"glossary: 5":               "",
		"loss: 1e999":               "",
		"loss: 2026-11-25":          "",
		"":                          "",
	} {
		var s tasklog.Scalars
		s.In(line)
		var got []string
		for _, f := range s.Take() {
			got = append(got, fmt.Sprintf("%s=%v", f.Name, f.Last))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("in %q: %v, want %s", line, got, want)
		}
	}
}

func TestScalarsAreSummedUp(t *testing.T) {
	var s tasklog.Scalars
	s.In("loss: 3\rloss: 1\rloss: 2")
	s.In("loss: nan")
	if got := s.Take(); len(got) != 1 || got[0].Min != 1 || got[0].Max != 3 || got[0].Mean() != 2 || !math.IsNaN(got[0].Last) {
		t.Errorf("%+v", got)
	}
	if got := s.Take(); got != nil {
		t.Errorf("twice: %+v", got)
	}
	for i := range 100 {
		s.In(fmt.Sprintf("loss_%d: 1", i))
	}
	if got := s.Take(); len(got) != tasklog.MaxScalars-1 { // loss was the first
		t.Errorf("%d names are reported", len(got))
	}
}

// TestScalarsOfPrograms reads what programs wrote: see TestStepsOfPrograms.
func TestScalarsOfPrograms(t *testing.T) {
	for file, want := range map[string][]string{
		"lightning":   {"train_loss_step", "val_loss"},
		"huggingface": {"loss", "grad_norm", "learning_rate", "eval_loss"},
		"keras":       {"loss", "val_loss"},
		"keras-lines": {"loss", "val_loss"},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", "progress", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		var s tasklog.Scalars
		for line := range strings.Lines(string(b)) {
			s.In(strings.TrimRight(line, "\n"))
		}
		var names []string
		for _, f := range s.Take() {
			names = append(names, f.Name)
			if f.Count == 0 || f.Min > f.Max {
				t.Errorf("%s: %+v", file, f)
			}
		}
		for _, w := range want {
			if !slices.Contains(names, w) {
				t.Errorf("%s: %v, want %s among them", file, names, w)
			}
		}
		t.Logf("%s: %v", file, names)
	}
}

func FuzzScalars(f *testing.F) {
	f.Add("loss = 0.3\r'acc': np.float32(5e-1) loss nan")
	f.Add("loss:-+1e-+.5e")
	f.Fuzz(func(t *testing.T, line string) {
		defer bound.Memory(t, len(line), 64)()
		var s tasklog.Scalars
		s.In(line)
		for _, found := range s.Take() {
			if found.Name == "" || len(found.Name) > 64 || found.Count > 0 && !(found.Min <= found.Max) {
				t.Fatalf("%+v in %q", found, line)
			}
		}
	})
}
