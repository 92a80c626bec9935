package torture

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/test/pyenv"
)

var restores = flag.Int("restores", 12, "stores, left by crashes, that the real TensorFlow restores from")

// restoreScript says for each directory what TensorFlow finds there: the step,
// and the saves that the values are of.
const restoreScript = `
import json, sys
import tensorflow as tf
found = []
for d in sys.argv[1:]:
    prefix = tf.train.latest_checkpoint(d)
    r = tf.train.load_checkpoint(prefix)
    saves = set()
    for name in r.get_variable_to_shape_map():
        values = r.get_tensor(name)
        if name == "global_step":
            step = int(values[0])
        else:
            saves |= {int(v) >> 20 for v in values}
    found.append({"step": step, "saves": sorted(saves)})
print(json.dumps(found))
`

// TestTensorFlowRestores gives some of what the crash test leaves to the real
// TensorFlow, which must find what the model of it has found.
func TestTensorFlowRestores(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		t.Fatal(err)
	}
	left := memoryDir(t)
	var outcomes counts
	var cuts atomic.Int64
	var dirs []string
	var want []restored
	h := &history{
		t: t, seed: *firstSeed, base: memoryDir(t), outcomes: &outcomes, cuts: &cuts,
		style: program{shards: 3, sharded: true, maxToKeep: 1, meta: true, width: 30, dir: "."},
	}
	good := 0
	h.judged = func(dir string, r restored) {
		if good++; good%(400 / *restores) != 0 || len(dirs) >= *restores {
			return
		}
		to := filepath.Join(left, fmt.Sprint(good))
		image(t, dir, to)
		dirs, want = append(dirs, to), append(want, r)
	}
	h.run()
	if len(dirs) < *restores/2 {
		t.Fatalf("only %d stores were left by %d cuts", len(dirs), cuts.Load())
	}
	cmd := exec.CommandContext(ctx, python, append([]string{"-c", restoreScript}, dirs...)...)
	cmd.Env = append(os.Environ(), "TF_CPP_MIN_LOG_LEVEL=3", "CUDA_VISIBLE_DEVICES=")
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			t.Fatalf("TensorFlow: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var got []struct {
		Step  int64
		Saves []int64
	}
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(want) {
		t.Fatalf("%v: %s", err, out)
	}
	for i, w := range want {
		if g := got[i]; g.Step != w.step || len(g.Saves) != 1 || g.Saves[0] != w.id {
			t.Errorf("store %d: TensorFlow restores step %d of the saves %v, want step %d of save %d", i, g.Step, g.Saves, w.step, w.id)
		}
	}
	t.Logf("TensorFlow restored from %d of the stores that %d cuts left: %v", len(got), cuts.Load(), got)
}
