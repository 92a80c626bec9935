package output

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/runtime/tasklog"
)

// TestStepsOfABar: a bar is written over for as long as an epoch takes, in pieces of any
// size, and no line ends meanwhile.
func TestStepsOfABar(t *testing.T) {
	for _, size := range []int{1, 7, 100, 1 << 20} {
		o, w, err := New(filepath.Join(t.TempDir(), "log"), "log", tasklog.NewStepFinder(tasklog.DefaultSteps), logrus.NewEntry(logrus.New()))
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		<-o.Done()
		take := func(text string) {
			for b := []byte(text); len(b) > 0; b = b[min(size, len(b)):] {
				o.take(time.Now(), b[:min(size, len(b))])
			}
		}
		take("begins\nstep 1") // of 12, for all that is known
		if n := o.Made().Step; n != 0 {
			t.Errorf("in pieces of %d: step %d in the middle of a line", size, n)
		}
		take("2\n")
		if n := o.Made().Step; n != 12 {
			t.Errorf("in pieces of %d: step %d in a line, want 12", size, n)
		}
		for i := range 200 {
			take(fmt.Sprintf("\rEpoch 1:  50%%|█████     | %d/200 [00:00<00:01, 16.13it/s, loss=0.5]", i+1))
		}
		if n := o.Made().Step; n != 400 {
			t.Errorf("in pieces of %d: step %d, want 400", size, n)
		}
		take("\rValidation:  50%|█████     | 1/2 [00:00<00:01, 16.13it/s]\r            \r\n")
		if n, other := o.Made().Step, o.OtherProgress(); n != 400 || other == 0 {
			t.Errorf("in pieces of %d: after a validation step %d, and %d of other progress", size, n, other)
		}
	}
}

// TestWhatATracebackQuotes: lines of the program's source that a traceback shows are not
// what the program has printed.
func TestWhatATracebackQuotes(t *testing.T) {
	o, w, err := New(filepath.Join(t.TempDir(), "log"), "log", tasklog.NewStepFinder(tasklog.DefaultSteps), logrus.NewEntry(logrus.New()))
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	<-o.Done()
	o.take(time.Now(), []byte(`Traceback (most recent call last):
  File "train.py", line 4, in <module>
    x = all_reduce(x); print("step 1", x.sum()); optimizer = Adam(lr=0.01,
                                                             ^^^^^^^^^^^^^
                                                 loss=0.5); print("step 2")
[rank0]:   File "train.py", line 5, in <module>
[rank0]:     print("step 3, loss 1.5")
  | Traceback (most recent call last):
  |   File "train.py", line 6, in <module>
  |     print("step 4, loss 1.5")
RuntimeError: mismatch
`))
	if m, s := o.Made(), o.TakeScalars(); m.Reports != 0 || len(s) != 0 {
		t.Errorf("of what is quoted, %+v and %+v were taken in", m, s)
	}
	o.take(time.Now(), []byte("  File \"data/train.csv\" is read\n  step 5, loss 2.5\n    step 6, loss 3.5\n"))
	if m, s := o.Made(), o.TakeScalars(); m.Step != 6 || len(s) != 1 || s[0].Count != 2 {
		t.Errorf("of what is printed, %+v and %+v were taken in, want step 6 and two losses", m, s)
	}
}
