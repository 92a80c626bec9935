package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/cmd/yarn-submit/ckpt"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// copyFixtures copies files below hdfsckpt into a directory, under new names.
func copyFixtures(t *testing.T, to string, names map[string]string) {
	t.Helper()
	for from, name := range names {
		b, err := os.ReadFile(filepath.Join("../../hdfsckpt", from))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(to, name), string(b))
	}
}

// call runs a command that must succeed and decodes its JSON.
func callJSON(t *testing.T, p place, into any, args ...string) {
	t.Helper()
	out, errs, code := p.call(append(args, "--output", "json")...)
	if code != 0 {
		t.Fatalf("%v ended with %d: %s%s", args, code, out, errs)
	}
	if err := json.Unmarshal([]byte(out), into); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// listJSON returns what ckpt ls lists.
func listJSON(t *testing.T, p place, args ...string) []inspect.Checkpoint {
	t.Helper()
	var list inspect.Listing
	callJSON(t, p, &list, append([]string{"ckpt", "ls"}, args...)...)
	return list.Checkpoints
}

// TestPyTorchIsShown looks at what PyTorch wrote, in both of its forms.
func TestPyTorchIsShown(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	copyFixtures(t, dir, map[string]string{
		"torchfile/testdata/train-40.pt": "step-40.pt", "torchfile/testdata/legacy.pt": "step-50.pt",
		"torchfile/testdata/dcp-300/.metadata": "step-300/.metadata", "torchfile/testdata/dcp-300/__0_0.distcp": "step-300/__0_0.distcp",
		"torchfile/testdata/dcp-300/__1_0.distcp": "step-300/__1_0.distcp",
	})
	list := listJSON(t, p, "./ck")
	got := ""
	for _, c := range list {
		got += c.Kind + " " + c.State + ";"
	}
	if want := "torch complete;torch unchecked;dcp complete;"; got != want || !list[2].Newest {
		t.Errorf("ls: %s, want %s", got, want)
	}
	text, _, _ := p.call("ckpt", "ls", "./ck")
	contains(t, text, "step-50.pt", "no checksums", "newest complete")

	var shown inspect.Details
	callJSON(t, p, &shown, "ckpt", "show", "./ck", "40", "--filter", "model.?.weight")
	names := ""
	for _, x := range shown.Tensors {
		names += x.Name + " " + string(x.DType) + ";"
	}
	if names != "model.0.weight float32;model.2.weight float32;model.1.weight float32;" { // the largest first
		t.Errorf("show: %s", names)
	}
	callJSON(t, p, &shown, "ckpt", "show", "./ck", "300")
	if len(shown.Tensors) != 4 || shown.Tensors[0].Name != "model.columns" || shown.Tensors[0].Pieces != 2 || len(shown.Files) != 3 {
		t.Errorf("show: %+v", shown)
	}
	if text, _, code := p.call("ckpt", "show", "./ck", "50"); code != 0 || !strings.Contains(text, "unchecked") {
		t.Errorf("show of what cannot be checked ended with %d: %s", code, text)
	}

	var values struct{ Values []int64 }
	callJSON(t, p, &values, "ckpt", "cat", "./ck", "300", "model.columns", "--values")
	for i, v := range values.Values {
		if v != int64(i) {
			t.Errorf("cat: element %d is %d", i, v)
		}
	}
	var changes struct{ Changes []inspect.Change }
	callJSON(t, p, &changes, "ckpt", "diff", "./ck", "40", "300")
	kinds := map[string]int{}
	for _, c := range changes.Changes {
		kinds[c.Change]++
	}
	if kinds["added"] != 4 || kinds["removed"] == 0 || kinds["changed"] != 0 {
		t.Errorf("diff: %v", kinds)
	}
	for _, step := range []string{"40", "300"} {
		if out, errs, code := p.call("ckpt", "verify", "./ck", step); code != 0 {
			t.Errorf("verify %s ended with %d: %s%s", step, code, out, errs)
		}
	}
	if out, _, code := p.call("ckpt", "verify", "./ck", "50"); code != client.ExitFailed || !strings.Contains(out, "unchecked") {
		t.Errorf("verify of what cannot be checked ended with %d: %s", code, out)
	}
}

// TestMXNetIsShown: arrays with their names, of one without names their places, and of one
// that is not dense its parts.
func TestMXNetIsShown(t *testing.T) {
	p := newPlace(t)
	files := map[string]string{}
	for i, name := range []string{"module-0002", "list", "sparse", "numpy", "kinds"} {
		files["testdata/mxnet/"+name+".params"] = fmt.Sprintf("a-%d.params", i)
	}
	copyFixtures(t, filepath.Join(p.dir, "ck"), files)
	for step, want := range []string{
		"arg:fc_weight float32 [1 3];arg:fc_bias float32 [1];",
		"0 float32 [2 3];1 int64 [1];",
		"csr.indptr int64 [4];csr.indices int64 [3];rows.data float32 [2 2];rows.indices int64 [2];csr.data float32 [3];none.data float32 [0 4];none.indices int64 [0];",
		"table float32 [2 2];scalar float32 [];nothing float32 [0 2];",
		"",
	} {
		var shown inspect.Details
		callJSON(t, p, &shown, "ckpt", "show", "./ck", fmt.Sprint(step))
		got := ""
		for _, x := range shown.Tensors {
			got += fmt.Sprint(x.Name, " ", x.DType, " ", x.Shape, ";")
			if want == "" && (x.Name != string(x.DType) || fmt.Sprint(x.Shape) != "[3]") {
				t.Errorf("%s is shown as %s %v", x.Name, x.DType, x.Shape)
			}
		}
		if want != "" && got != want || want == "" && len(shown.Tensors) != 8 || shown.Kind != "mxnet" {
			t.Errorf("show of %d, %s: %s, want %s", step, shown.Kind, got, want)
		}
	}
	for _, x := range []struct{ step, name, want string }{
		{"1", "0", "[1 2 3 4 5 6]"}, {"1", "1", "[7]"}, {"2", "rows.data", "[0 3 1 2]"}, {"2", "rows.indices", "[0 2]"},
		{"2", "csr.indptr", "[0 1 1 3]"}, {"3", "scalar", "[3.5]"}, {"3", "table", "[0 1 2 3]"},
		{"4", "float64", "[0 1 1]"}, {"4", "float16", "[0 1 1]"}, {"4", "int8", "[0 1 1]"}, {"4", "bool", "[0 1 1]"},
	} {
		var values struct{ Values []float64 }
		callJSON(t, p, &values, "ckpt", "cat", "./ck", x.step, x.name, "--values")
		if got := fmt.Sprint(values.Values); got != x.want {
			t.Errorf("%s of %s has %s, want %s", x.name, x.step, got, x.want)
		}
	}
}

// TestTrainersIsShown: a checkpoint is shown with its files and their tensors, and verify
// claims no more than it has compared.
func TestTrainersIsShown(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": "checkpoint-10/pytorch_model.bin"})
	if err := os.WriteFile(filepath.Join(dir, "checkpoint-10/trainer_state.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	var shown inspect.Details
	callJSON(t, p, &shown, "ckpt", "show", "./ck")
	if shown.Kind != "huggingface" || !shown.Complete || len(shown.Files) != 2 || len(shown.Tensors) != 1 {
		t.Errorf("show: %+v", shown)
	}
	text, _, _ := p.call("ckpt", "verify", "./ck")
	contains(t, text, "file lengths are right, and those of torch.save agree with their checksums; no checksums of the other files to compare")
}

// TestGetGoesOn: get does again only what is not done, and writes over nothing.
func TestGetGoesOn(t *testing.T) {
	p := newPlace(t)
	names := map[string]string{"tfbundle/testdata/sharded.ckpt-1200.index": "model.ckpt-7.index"}
	shards := []string{}
	for _, i := range "0123" {
		shard := ".data-0000" + string(i) + "-of-00004"
		shards = append(shards, filepath.Join(p.dir, "out", "model.ckpt-7"+shard))
		names["tfbundle/testdata/sharded.ckpt-1200"+shard] = "model.ckpt-7" + shard
	}
	copyFixtures(t, filepath.Join(p.dir, "ck"), names)
	var first, second ckpt.Got
	callJSON(t, p, &first, "ckpt", "get", "./ck", "7", "out")
	if first.Copied != 5 || first.Present != 0 {
		t.Errorf("%+v", first)
	}
	if err := os.Remove(shards[2]); err != nil {
		t.Fatal(err)
	}
	callJSON(t, p, &second, "ckpt", "get", "./ck", "7", "out")
	if second.Copied != 1 || second.Present != 4 {
		t.Errorf("%+v", second)
	}
	if out, errs, code := p.call("ckpt", "verify", "./out"); code != 0 {
		t.Errorf("verify of the copy ended with %d: %s%s", code, out, errs)
	}
	state, err := os.ReadFile(filepath.Join(p.dir, "out", "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	// Another file of the same name and length: nothing is written at all.
	info, err := os.Stat(shards[1])
	if err != nil {
		t.Fatal(err)
	}
	write(t, shards[1], strings.Repeat("x", int(info.Size())))
	if err := os.Remove(shards[2]); err != nil {
		t.Fatal(err)
	}
	_, errs, code := p.call("ckpt", "get", "./ck", "7", "out")
	if code != client.ExitUsage || !strings.Contains(errs, filepath.Base(shards[1])) {
		t.Errorf("get over another file ended with %d: %s", code, errs)
	}
	if _, err := os.Stat(shards[2]); err == nil {
		t.Error("get wrote a file though another was in the way")
	}
	// A second checkpoint beside the first is added to the file `checkpoint`.
	copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{
		"tfbundle/testdata/objects-24.index": "objects-24.index", "tfbundle/testdata/objects-24.data-00000-of-00001": "objects-24.data-00000-of-00001",
	})
	callJSON(t, p, &first, "ckpt", "get", "./ck", "24", "out")
	after, err := os.ReadFile(filepath.Join(p.dir, "out", "checkpoint"))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tfbundle.ParseState(after)
	if err != nil || parsed.Current != "objects-24" || strings.Join(parsed.All, " ") != "model.ckpt-7 objects-24" {
		t.Errorf("the file checkpoint was %s, and is %s", state, after)
	}
	if _, errs, code := p.call("ckpt", "get", "./ck", "24", filepath.Join("out", "checkpoint")); code == 0 {
		t.Errorf("get into a file ended with %d: %s", code, errs)
	}
}

// TestRetainedIsListed: what a program has removed, and is retained, is found in the
// list and restored by its step.
func TestRetainedIsListed(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	files, err := filepath.Glob("../../hdfsckpt/tfbundle/testdata/sharded.ckpt-1200.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	names := map[string]string{}
	for _, f := range files {
		base := filepath.Base(f)
		names["tfbundle/testdata/"+base] = base
	}
	copyFixtures(t, dir, names)
	for from := range names {
		names[from] = strings.Replace(names[from], "1200", "1300", 1)
	}
	copyFixtures(t, dir, names)
	write(t, filepath.Join(dir, "checkpoint"), "model_checkpoint_path: \"sharded.ckpt-1300\"\n")

	s, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	area := func(ctx context.Context) (string, error) {
		return writers.Dir("test"), store.MkdirAll(ctx, s, writers.Dir("test"), 0o755)
	}
	for _, f := range files { // as the program's removal through a mount does
		retained, err := retain.Removing(t.Context(), s, area, filepath.Base(f))
		if err == nil && !retained {
			err = s.Remove(t.Context(), filepath.Base(f))
		}
		if err != nil {
			t.Fatal(err)
		}
	}

	list := listJSON(t, p, "./ck")
	if len(list) != 2 || !list[0].Newest || list[0].Retained || list[1].Name != "sharded.ckpt-1200" || !list[1].Retained || !list[1].Complete || list[1].Newest {
		t.Errorf("ls: %+v", list)
	}
	text, _, _ := p.call("ckpt", "ls", "./ck")
	contains(t, text, "sharded.ckpt-1200", "retained")
	if _, errs, code := p.call("ckpt", "rollback", "./ck", "1200", "--yes"); code != 0 {
		t.Errorf("rollback ended with %d: %s", code, errs)
	}
	list = listJSON(t, p, "./ck")
	if len(list) != 2 || list[0].Name != "sharded.ckpt-1200" || list[0].Retained || !list[0].Current {
		t.Errorf("ls after the rollback: %+v", list)
	}
}

// TestATrainersCheckpointSaysHowManyStepsThereAre: where the program prints no more than its step,
// the time that is left is known from what Hugging Face's Trainer saves.
func TestATrainersCheckpointSaysHowManyStepsThereAre(t *testing.T) {
	p := newPlace(t)
	names := map[string]string{}
	for _, name := range []string{"config.json", "model.safetensors", "optimizer.pt", "trainer_state.json"} {
		names["testdata/trainer/checkpoint-1/"+name] = name
	}
	copyFixtures(t, filepath.Join(p.dir, "given"), names)
	id := p.detached("--worker", "1", "--files", "given/", "--checkpoint", "./out=ck", "--", "sh", "-c", `d=out/checkpoint-40; mkdir $d
cp given/config.json given/model.safetensors given/optimizer.pt $d
sed 's/"max_steps": .*,/"max_steps": 700,/' given/trainer_state.json > $d/trainer_state.json; echo step 40; exec sleep 1000`)
	s := p.until(id, "its checkpoint", func(s *proto.JobStatus) bool { return s.Step == 40 && s.CompleteStep == 40 && s.TotalSteps != 0 })
	if out, _, _ := p.call("status", id); s.TotalSteps != 700 || !strings.Contains(out, "step 40/700") {
		t.Errorf("there are %d steps:\n%s", s.TotalSteps, out)
	}
}
