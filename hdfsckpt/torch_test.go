package hdfsckpt_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// torchFixture reads a file that PyTorch wrote.
func torchFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("torchfile/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// putDistributed puts a distributed checkpoint that PyTorch wrote on two ranks
// into a directory, but for the files that change returns nil for.
func putDistributed(t testing.TB, s store.Store, dir string, change func(name string, content []byte) []byte) {
	t.Helper()
	for _, name := range []string{"__0_0.distcp", "__1_0.distcp", ".metadata"} {
		content := torchFixture(t, "dcp-300/"+name)
		if change != nil {
			content = change(name, content)
		}
		if content != nil {
			put(t, s, path.Join(dir, name), content)
		}
	}
}

func TestTorchCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "train-40.pt")
	put(t, s, "step-40.pt", whole)
	put(t, s, "run-2/epoch=3-step=60.ckpt", whole)
	put(t, s, "checkpoint-500/pytorch_model.bin", whole)
	put(t, s, "checkpoint-500/rng_state_0.pth", whole)
	put(t, s, "checkpoint-500/tokenizer.bin", []byte("something else"))
	put(t, s, "step-70/model.pt", whole) // a directory step-N without a marker of its own
	put(t, s, "model_80.pt", whole[:len(whole)-100])
	put(t, s, "model_90.pt", whole[:100])
	put(t, s, "model_100.pt", nil)
	put(t, s, "old_110.pt", torchFixture(t, "legacy.pt"))
	put(t, s, "labels_120.pt", []byte("a,b,c"))
	put(t, s, "step-130.pt.tmp", whole)
	put(t, s, "model.ckpt-140.data-00000-of-00001", []byte("x"))
	want := `step-40.pt torch 1 complete
run-2/epoch=3-step=60.ckpt torch 1 complete
step-70/model.pt torch 1 complete
model_80.pt torch 1 torn (not a whole file of torch.save: its directory, at the end: zip: not a valid zip file)
model_90.pt torch 1 torn (not a whole file of torch.save: its directory, at the end: zip: not a valid zip file)
model_100.pt torch 1 torn (it is empty)
old_110.pt torch 1 unchecked (it has the format of before PyTorch 1.6, in which a file that was cut off cannot be recognised: it has no checksums)
labels_120.pt torch 1 unchecked (it does not begin as torch.save's files do)
model.ckpt-140 tensorflow 1 torn (it has no index: the save did not get that far)
checkpoint-500 directory 3 unchecked (nothing in it shows whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE)
`
	found := list(t, s)
	if got := describe(found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if found[0].Step != 40 || found[1].Step != 60 || found[5].Step != 100 || found[9].Step != 500 {
		t.Errorf("steps: %+v", found)
	}
	// Nothing removes what cannot be checked, nor does it count as complete.
	for _, c := range hdfsckpt.PlanPrune(found, 1, 0).Remove {
		if c.State == format.Unchecked {
			t.Errorf("%s would be removed", c.Name)
		}
	}
}

// TestTorchFilesCalledTar: pytorch/examples saves checkpoint.pth.tar, which is no tar
// archive, and copies it to model_best.pth.tar.
func TestTorchFilesCalledTar(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "train-40.pt")
	put(t, s, "checkpoint.pth.tar", whole)
	put(t, s, "checkpoint_0012.pth.tar", whole)
	put(t, s, "checkpoint_0013.pth.tar", whole[:len(whole)-100])
	put(t, s, "checkpoint_0014.pth.tar", torchFixture(t, "legacy.pt"))
	put(t, s, "checkpoint_0015.pth.tar", append([]byte("sys_info"), make([]byte, 504)...))
	put(t, s, "data_0016.tar", whole)
	put(t, s, "40/a.pth.tar", whole)
	put(t, s, "40/b.pth.tar", whole)
	want := `checkpoint.pth.tar torch 1 complete
checkpoint_0012.pth.tar torch 1 complete
checkpoint_0013.pth.tar torch 1 torn (not a whole file of torch.save: its directory, at the end: zip: not a valid zip file)
checkpoint_0014.pth.tar torch 1 unchecked (it has the format of before PyTorch 1.6, in which a file that was cut off cannot be recognised: it has no checksums)
checkpoint_0015.pth.tar torch 1 unchecked (it does not begin as torch.save's files do)
40 directory 2 unchecked (nothing in it shows whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE)
`
	found := list(t, s)
	if got := describe(found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if found[0].Step != format.NoStep || found[1].Step != 12 {
		t.Errorf("steps: %+v", found)
	}
	if !formats.MayComplete(format.Rule{}, "run/checkpoint.pth.tar") {
		t.Error("nobody looks when one is written")
	}
}

// TestFilesThatAreNotOurs: one that may not be read, and a pipe, which would
// keep a reader waiting, do not hide the others.
func TestFilesThatAreNotOurs(t *testing.T) {
	dir := t.TempDir()
	local := openLocal(t, dir)
	defer local.Close()
	put(t, local, "step-40.pt", torchFixture(t, "alone.pt"))
	must(t, syscall.Mkfifo(filepath.Join(dir, "step-50.pt"), 0o644))
	if got, want := describe(list(t, local)), "step-40.pt torch 1 complete\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s := refusing{local, "step-60.pt"}
	put(t, local, "step-60.pt", torchFixture(t, "alone.pt"))
	if got, want := describe(list(t, s)), "step-40.pt torch 1 complete\nstep-60.pt torch 1 unchecked (open step-60.pt: permission denied)\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// refusing lets nobody read one file.
type refusing struct {
	store.Store
	name string
}

func (r refusing) Open(ctx context.Context, name string) (store.Reader, error) {
	if name == r.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return r.Store.Open(ctx, name)
}

// TestPruneCountsSteps: files of one step stay or go together, in whatever
// directories; and what is called after no step stays.
func TestPruneCountsSteps(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "alone.pt")
	for _, step := range []string{"10", "20", "30"} {
		put(t, s, "model-"+step+".pt", whole)
		put(t, s, "optimizer-"+step+".pt", whole)
		putTrainer(t, s, "trainer/checkpoint-"+step)
		put(t, s, "alone/checkpoint-"+step+"/model.pt", whole)
	}
	put(t, s, "best.pt", whole)
	must(t, hdfsckpt.PlanPrune(list(t, s), 1, 20).Execute(context.Background(), s))
	names := []string{}
	for _, c := range list(t, s) {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	want := "alone/checkpoint-20/model.pt alone/checkpoint-30/model.pt best.pt model-20.pt model-30.pt optimizer-20.pt optimizer-30.pt trainer/checkpoint-20 trainer/checkpoint-30"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("left are\n%s, want\n%s", got, want)
	}
}

// TestPruneKeepsWhatWasSavedTogether: a program was killed between the files of its last step. It
// goes on from the step before, all files of which are still there.
func TestPruneKeepsWhatWasSavedTogether(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "alone.pt")
	for _, step := range []string{"10", "20", "30"} {
		put(t, s, "model-"+step+".pt", whole)
		put(t, s, "elsewhere/model-"+step+".pt", whole)
	}
	put(t, s, "optimizer-10.pt", whole)
	put(t, s, "optimizer-20.pt", whole)
	plan := hdfsckpt.PlanPrune(list(t, s), 1, 0)
	kept := []string{}
	for _, k := range plan.Keep {
		kept = append(kept, k.Name+": "+k.Reason)
	}
	slices.Sort(kept)
	want := []string{
		"elsewhere/model-30.pt: one of the newest 1 of elsewhere/model-#.pt",
		"model-20.pt: of the step of optimizer-20.pt",
		"model-30.pt: one of the newest 1 of model-#.pt",
		"optimizer-20.pt: one of the newest 1 of optimizer-#.pt",
	}
	if !slices.Equal(kept, want) {
		t.Errorf("kept are\n%s, want\n%s", strings.Join(kept, "\n"), strings.Join(want, "\n"))
	}
	if len(plan.Remove) != 4 {
		t.Errorf("%d are removed, want 4: %s", len(plan.Remove), describe(plan.Remove))
	}
}

func TestDistributedCheckpoints(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t, t.TempDir())
	defer s.Close()
	lacks := func(file string) func(string, []byte) []byte {
		return func(name string, b []byte) []byte {
			if name == file {
				return nil
			}
			return b
		}
	}
	putDistributed(t, s, "step-100", nil)
	putDistributed(t, s, "step-200", nil)
	putDistributed(t, s, "step-300", lacks(".metadata"))
	putDistributed(t, s, "step-400", lacks("__1_0.distcp"))
	putDistributed(t, s, "step-500", func(name string, b []byte) []byte {
		if name == "__0_0.distcp" {
			return b[:len(b)-1]
		}
		return b
	})
	putDistributed(t, s, "step-600", func(name string, b []byte) []byte {
		if name == ".metadata" {
			return b[:len(b)/2]
		}
		return b
	})
	want := `step-100 dcp 2 complete
step-200 dcp 2 complete
step-300 dcp 2 torn (it has no file .metadata: the save did not get that far)
step-400 dcp 1 torn (__1_0.distcp is missing)
step-500 dcp 2 torn (__0_0.distcp has 3217 bytes, 3218 are needed)
`
	found := list(t, s)
	got := describe(found)
	if last := describe(found[5:]); !strings.HasPrefix(got, want) || !strings.HasPrefix(last, "step-600 dcp 2 torn (not a whole .metadata of a distributed checkpoint: ") {
		t.Errorf("got\n%s\nwant\n%s and one torn", got, want)
	}
	seal(t, s, "step-200")
	plan := hdfsckpt.PlanPrune(list(t, s), 1, 0)
	must(t, plan.Execute(ctx, s))
	if _, err := s.Stat(ctx, "step-100"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("step-100 was not removed: %v", err)
	}
	if found := list(t, s); !strings.HasPrefix(states(found), "step-200 sealed; step-300 torn") {
		t.Errorf("after the prune: %s", states(found))
	}
}

// TestStepsOfDistributed: the step is known however programs call the directory.
func TestStepsOfDistributed(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	steps := map[string]int64{
		"step_40": 40, "41": 41, "checkpoint-42": 42, "run/global_step43": 43, "ckpt-of-44": 44,
		"epoch=1-step=45.ckpt": 45, "last.ckpt": format.NoStep, "pytorch_model_fsdp_0": format.NoStep, "run-7/dcp": format.NoStep,
	}
	for name := range steps {
		putDistributed(t, s, name, nil)
	}
	found := list(t, s)
	if len(found) != len(steps) {
		t.Errorf("found are\n%s", describe(found))
	}
	for _, c := range found {
		if want := steps[c.Name]; c.Step != want || !c.Whole() {
			t.Errorf("%s is %s, of step %d, want %d", c.Name, c.State, c.Step, want)
		}
	}
}

// TestVerifyTorch flips a byte of each tensor, and finds which it was.
func TestVerifyTorch(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	b := torchFixture(t, "train-40.pt")
	put(t, s, "step-40.pt", b)
	putDistributed(t, s, "step-300", nil)
	for _, c := range list(t, s) {
		if problems := verify(t, s, c); len(problems) != 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
	}
	c := list(t, s)[0]
	tensors, err := format.OpenTensors(context.Background(), s, &c)
	must(t, err)
	defer tensors.Close()
	weight := tensors.Find("model.0.weight")
	if weight == nil {
		t.Fatal("there is no tensor model.0.weight")
	}
	values, err := weight.Read()
	must(t, err)
	at := strings.Index(string(b), string(values))
	b[at+3] ^= 1
	put(t, s, "step-40.pt", b)
	problems := verify(t, s, list(t, s)[0])
	if len(problems) != 1 || problems[0].Tensor != "model.0.weight" || problems[0].Offset != int64(at) || !strings.Contains(problems[0].Text, "checksum") {
		t.Errorf("byte %d was changed: %v", at+3, problems)
	}
	putDistributed(t, s, "step-300", func(name string, b []byte) []byte {
		if name == "__1_0.distcp" { // in the middle of the bytes of the second archive's tensor
			i := strings.Index(string(b), "data/0") + len("data/0")
			i += strings.Index(string(b[i:]), "Z") // its padding
			for b[i] == 'Z' {
				i++
			}
			b[i] ^= 1
		}
		return b
	})
	problems = verify(t, s, list(t, s)[1])
	if len(problems) != 1 || problems[0].File != "step-300/__1_0.distcp" || !strings.HasPrefix(problems[0].Tensor, "model.") {
		t.Errorf("a tensor of a distributed checkpoint was changed: %v", problems)
	}
}

// TestDiffOfTorch compares what one program saved in two forms.
func TestDiffOfTorch(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	put(t, s, "a_1.pt", torchFixture(t, "alone.pt"))
	put(t, s, "b_2.pt", torchFixture(t, "unchecked.pt"))
	putDistributed(t, s, "c-3", nil)
	open := func(i int) *format.Tensors {
		c := list(t, s)[i]
		x, err := format.OpenTensors(context.Background(), s, &c)
		must(t, err)
		t.Cleanup(func() { x.Close() })
		return x
	}
	changes, err := hdfsckpt.Diff(open(0), open(1), hdfsckpt.DiffOptions{Limit: math.MaxInt64})
	must(t, err)
	if len(changes) != 2 || !changes[0].Removed || changes[0].Name != "a_1.pt" || !changes[1].Added || changes[1].Name != "a" {
		t.Errorf("%+v", changes)
	}
	if changes, err := hdfsckpt.Diff(open(2), open(2), hdfsckpt.DiffOptions{Limit: math.MaxInt64}); err != nil || len(changes) != 0 {
		t.Errorf("%+v, %v", changes, err)
	}
	x := open(2).Find("model.columns")
	if x == nil || x.Pieces != 2 || x.Kind != "int64" {
		t.Fatalf("%+v", x)
	}
	sum, err := tensor.Summarise(x.Kind, func() (io.Reader, error) { return x.Elements(0) }, 4)
	if err != nil || sum.Elements != 20 || sum.Max != 19 || sum.Mean != 9.5 || math.Abs(sum.Norm-math.Sqrt(2470)) > 1e-9 {
		t.Errorf("%+v, %v", sum, err)
	}
}
