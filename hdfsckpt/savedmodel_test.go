package hdfsckpt_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/test/pyenv"
)

// savedModelGraph is a message SavedModel with its version and one graph, of which nothing is
// read.
var savedModelGraph = append([]byte{0x08, 1, 0x12, 20}, make([]byte, 20)...)

// putSavedModel puts an export, but for the files that change returns nil for.
func putSavedModel(t testing.TB, s store.Store, dir string, change func(name string, content []byte) []byte) {
	t.Helper()
	one := func(name string, content []byte) {
		if change != nil {
			content = change(name, content)
		}
		if content != nil {
			put(t, s, path.Join(dir, name), content)
		}
	}
	putCheckpoint(t, s, dir+"/variables/variables", func(suffix string, content []byte) []byte {
		if change != nil {
			content = change("variables/variables"+suffix, content)
		}
		return content
	})
	one("assets/words.txt", []byte("one"))
	one("saved_model.pb", savedModelGraph)
	one("fingerprint.pb", []byte("x"))
}

// lacking leaves out files, and cuts one off where its name is followed by a minus.
func lacking(names ...string) func(string, []byte) []byte {
	return func(name string, b []byte) []byte {
		switch {
		case slices.Contains(names, name):
			return nil
		case slices.Contains(names, name+"-"):
			return b[:len(b)-1]
		}
		return b
	}
}

// TestSavedModels: an export is one checkpoint with all that is in it, complete by saved_model.pb
// and its variables.
func TestSavedModels(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putSavedModel(t, s, "export/1", nil)
	putSavedModel(t, s, "export/2", lacking("saved_model.pb", "fingerprint.pb"))
	putSavedModel(t, s, "export/3", lacking("saved_model.pb-"))
	putSavedModel(t, s, "export/4", lacking("variables/variables.data-00001-of-00004"))
	putSavedModel(t, s, "export/5", lacking("variables/variables.index-"))
	putSavedModel(t, s, "export/6", func(name string, b []byte) []byte {
		if strings.HasPrefix(name, "variables/") {
			return nil
		}
		return b
	})
	putSavedModel(t, s, "export/7", nil)
	put(t, s, "export/7/saved_model.pb", []byte("mine"))
	putSavedModel(t, s, "estimator/1700000000", nil)
	putSavedModel(t, s, "estimator/temp-1700000001", nil)
	putSavedModel(t, s, "step-8", nil)
	putSavedModel(t, s, "alone", lacking("saved_model.pb", "fingerprint.pb"))
	putCheckpoint(t, s, "own/variables/variables", nil) // a saver's, which writes `checkpoint`
	put(t, s, "own/variables/checkpoint", stateFile("variables"))
	putCheckpoint(t, s, "model.ckpt-10", nil)
	const unwritten = "it has no file saved_model.pb, which is written last: the export did not get that far, unless the program gives a checkpoint of its own such names"
	want := `alone savedmodel 6 unchecked (` + unwritten + `)
estimator/1700000000 savedmodel 8 complete
estimator/temp-1700000001 savedmodel 8 torn (its name is that of an export that has not ended)
own/variables/variables tensorflow 4 complete current
export/1 savedmodel 8 complete
export/2 savedmodel 6 torn (it has no file saved_model.pb: the export did not get that far)
export/3 savedmodel 8 torn (saved_model.pb: it has 23 bytes, and a graph of it reaches to byte 24)
export/4 savedmodel 7 torn (variables: variables.data-00001-of-00004 is missing)
export/5 savedmodel 8 torn (variables: variables.index: not a whole TensorFlow index: it does not end as an index does: cut off, or no index)
export/6 savedmodel 3 unchecked (it has no variables, and nothing shows whether it should)
export/7 savedmodel 8 unchecked (saved_model.pb: it does not look like TensorFlow's)
step-8 savedmodel 8 complete
model.ckpt-10 tensorflow 4 complete
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	must(t, format.SetRule(t.Context(), s, format.Rule{Format: formats.TensorFlow}))
	if got := describe(list(t, s)); got != want {
		t.Errorf("by the rule for TensorFlow's, got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	var aside []string
	for _, a := range report.Aside {
		aside = append(aside, a.Name)
	}
	slices.Sort(aside)
	if got := strings.Join(aside, " "); err != nil || got != "export/2 export/3 export/4 export/5" || len(report.Pointed) > 0 {
		t.Errorf("moved aside: %s; %s, %v", got, report, err)
	}
}

// TestSavedModelIsCut: wherever saved_model.pb was cut off, the export is torn.
func TestSavedModelIsCut(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putSavedModel(t, s, "export/1", nil)
	for n := range savedModelGraph {
		put(t, s, "export/1/saved_model.pb", savedModelGraph[:n])
		if c := list(t, s); len(c) != 1 || c[0].State != format.Torn || !c[0].Certain {
			t.Errorf("with %d bytes of it: %s", n, describe(c))
		}
	}
}

// TestPointerAndExports: a saver's file `checkpoint` beside exports names no export, though that is
// called as its checkpoints are, and is younger.
func TestPointerAndExports(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "model.ckpt-10", nil)
	putSavedModel(t, s, "model.ckpt-90", nil)
	put(t, s, "checkpoint", stateFile("model.ckpt-20"))
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Pointed) != 1 || report.Pointed[0].To != "model.ckpt-10" {
		t.Errorf("%s, %v", report, err)
	}
}

// TestRealSavedModels: what TensorFlow and Keras export is whole, its variables are shown, and it is
// verified.
func TestRealSavedModels(t *testing.T) {
	type variable struct {
		shape  []int64
		values []float64
	}
	var raw map[string][2]json.RawMessage
	dir := savedBy(t, pyenv.TensorFlow, "savedmodel_save.py", &raw)
	said := map[string]variable{}
	for name, x := range raw {
		v := said[name]
		must(t, json.Unmarshal(x[0], &v.shape))
		must(t, json.Unmarshal(x[1], &v.values))
		said[name] = v
	}
	s := openLocal(t, dir)
	defer s.Close()
	found := list(t, s)
	var names []string
	for _, c := range found {
		names = append(names, c.Name)
		if c.Kind != formats.SavedModel || !c.Whole() {
			t.Errorf("%s", describe([]format.Checkpoint{c}))
			continue
		}
		if problems := verify(t, s, c); len(problems) > 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
	}
	if got := strings.Join(names, " "); got != "builder/1700000000 export/1 export/2 keras/epoch_3 text/4 over/model_5" || found[0].Step != format.NoStep || found[2].Step != 2 {
		t.Errorf("found are %s", got)
	}
	i := slices.Index(names, "export/1")
	tensors, err := format.OpenTensors(t.Context(), s, &found[i])
	must(t, err)
	defer tensors.Close()
	for name, want := range said {
		x := tensors.Find(name)
		if x == nil || !slices.Equal(x.Shape, want.shape) {
			t.Errorf("of %s: %+v, want %v", name, x, want)
			continue
		}
		b, err := x.Read()
		must(t, err)
		for j, w := range want.values {
			got := float64(0)
			switch x.Kind {
			case "float32":
				got = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:])))
			case "int64":
				got = float64(int64(binary.LittleEndian.Uint64(b[8*j:])))
			}
			if got != w {
				t.Errorf("%s[%d] is %v, want %v", name, j, got, w)
			}
		}
	}
	if len(said) < 2 {
		t.Errorf("TensorFlow says %v", said)
	}
	before := tree(t, s, ".")
	for _, age := range []time.Duration{0, time.Minute} {
		report, err := hdfsckpt.Repair(t.Context(), s, age)
		must(t, err)
		if after := tree(t, s, "."); report.String() != "" || after != before {
			t.Errorf("repaired at the age of %v: %q; there was\n%sand is\n%s", age, report, before, after)
		}
	}
	// Any bit of the variables is seen.
	data := "export/1/variables/variables.data-00000-of-00001"
	b, err := store.ReadFile(t.Context(), s, data)
	must(t, err)
	b[3] ^= 1
	must(t, store.WriteFile(t.Context(), s, data, b, 0o644))
	if problems := verify(t, s, list(t, s)[i]); len(problems) != 1 || problems[0].File != data {
		t.Errorf("a flipped bit: %v", problems)
	}
}

// TestSavedModelsAreRetained: removed, or exported over.
func TestSavedModelsAreRetained(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		putSavedModel(t, s, "export/1", nil)
		putSavedModel(t, s, "export/2", nil)
		seal(t, s, "export/1", "export/2")
		for _, f := range filesBelow(t, s, "export/1") {
			unlink(t, s, f)
		}
		kept := listRetained(t, s)
		if len(kept) != 1 || kept[0].Former != "export/1" || kept[0].State != format.Sealed || len(kept[0].Files) != 8 {
			t.Fatalf("retained are %+v", kept)
		}
		if problems, err := hdfsckpt.Verify(t.Context(), s, kept[0], nil); err != nil || len(problems) > 0 {
			t.Errorf("what is retained has the problems %v, %v", problems, err)
		}
		// Exported over, and lost in the middle: it comes back.
		publish(t, s, "export/2/variables/variables.index", []byte("x"))
		report, err := hdfsckpt.Repair(t.Context(), s, 0)
		if got := states(list(t, s)); err != nil || got != "export/2 sealed" || !slices.Equal(report.Restored, []string{"export/2"}) {
			t.Errorf("after a loss halfway: %s; %s, %v", got, report, err)
		}
		for _, f := range filesBelow(t, s, "export/2") {
			if path.Base(f) != "saved_model.pb" && path.Base(f) != "fingerprint.pb" {
				b, err := store.ReadFile(t.Context(), s, f)
				must(t, err)
				publish(t, s, f, b)
			}
		}
		publish(t, s, "export/2/saved_model.pb", savedModelGraph)
		publish(t, s, "export/2/fingerprint.pb", []byte("y"))
		if got := states(list(t, s)); got != "export/2 complete" {
			t.Errorf("exported over: %s", got)
		}
		kept = slices.DeleteFunc(listRetained(t, s), func(c format.Checkpoint) bool { return c.Former != "export/2" })
		if len(kept) != 1 || kept[0].State != format.Sealed || len(kept[0].Files) != 8 {
			t.Errorf("retained are %+v", kept)
		}
	})
}
