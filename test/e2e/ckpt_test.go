package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// saves does with PyTorch's files what PyTorch does, and writes a checkpoint in
// a form of its own into another directory.
const saves = `set -e
cp train-40.pt train_logs/step-40.pt
mkdir train_logs/step-300
cp dcp-300/__0_0.distcp dcp-300/__1_0.distcp train_logs/step-300
cp dcp-300/.metadata train_logs/step-300/.metadata.tmp
mv train_logs/step-300/.metadata.tmp train_logs/step-300/.metadata
mkdir -p state/7/params state/8/params
echo a > state/7/params/a
echo a > state/8/params/a
echo > state/7/_SUCCESS`

// TestCheckpointsOfAllForms: what a job wrote in several forms is sealed while
// it runs; afterwards it is looked at, checked and fetched by the job's name.
func TestCheckpointsOfAllForms(t *testing.T) {
	plain.enter(t)
	fixtures, err := filepath.Abs("../../hdfsckpt/torchfile/testdata")
	if err != nil {
		t.Fatal(err)
	}
	places(t, func(t *testing.T, w where, store string) {
		j := w.start(t, fixtures, "--framework", "pytorch", "--worker", "1", "--worker-memory", "256m", "--files", "train-40.pt,dcp-300",
			"--checkpoint", "./train_logs="+store+"/logs", "--checkpoint", "./state="+store+"/state,format=plain,marker=_SUCCESS",
			"--", "sh", "-c", saves)
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		call := func(into any, args ...string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(context.Background(), callLimit)
			defer cancel()
			stdout, stderr, code := w.call(ctx, "", append(append([]string{"ckpt"}, args...), "--output", "json")...)
			if code != 0 {
				t.Fatalf("ckpt %v ended with %d: %s%s", args, code, stdout, stderr)
			}
			if err := json.Unmarshal([]byte(stdout), into); err != nil {
				t.Fatalf("ckpt %v: %v\n%s", args, err, stdout)
			}
		}
		var list inspect.Listing
		call(&list, "ls", j.id)
		got := ""
		for _, c := range list.Checkpoints {
			got += c.Name + " " + c.Kind + " " + strings.ReplaceAll(c.State, "in progress", "torn") + ";"
			if c.State == "sealed" && c.Job != j.id {
				t.Errorf("%s was written by %q", c.Name, c.Job)
			}
		}
		if want := "step-40.pt torch sealed;step-300 dcp sealed;7 plain sealed;8 plain torn;"; got != want {
			t.Errorf("there are %s want %s", got, want)
		}
		logs := store + "/logs"
		var shown struct {
			Files   []struct{ Blocks []struct{ Hosts []string } }
			Tensors []struct{ Name string }
		}
		call(&shown, "show", logs, "300")
		if len(shown.Tensors) != 4 || len(shown.Files) != 3 {
			t.Errorf("show: %+v", shown)
		}
		for _, f := range shown.Files {
			if onHDFS := w.cluster != nil; onHDFS != (len(f.Blocks) == 1 && len(f.Blocks[0].Hosts) > 0) {
				t.Errorf("the blocks of a file are %+v", f.Blocks)
			}
		}
		out := t.TempDir()
		var copied struct{ Copied, Present int }
		call(&copied, "get", logs, "300", out)
		call(&copied, "get", logs, "300", out)
		if copied.Copied != 0 || copied.Present != 3 {
			t.Errorf("a second get copied %d files", copied.Copied)
		}
		for _, name := range []string{".metadata", "__0_0.distcp", "__1_0.distcp"} {
			a, err := os.ReadFile(filepath.Join(out, "step-300", name))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(filepath.Join(fixtures, "dcp-300", name)); err != nil || string(a) != string(b) {
				t.Errorf("%s was changed on the way (%v)", name, err)
			}
		}
		var verified struct{ OK bool }
		for _, step := range []string{"40", "300"} {
			call(&verified, "verify", logs, step)
			if !verified.OK {
				t.Errorf("step %s is damaged", step)
			}
		}
		var pruned struct{ Done bool }
		call(&pruned, "prune", logs, "--keep", "1", "--yes") // the only ones of their kinds stay
		call(&list, "ls", logs)
		if len(list.Checkpoints) != 2 {
			t.Errorf("after the prune there are %+v", list)
		}
	})
}
