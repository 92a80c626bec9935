package hdfsckpt_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// TestSafetensors: a file is whole if it has the length that its header says; of several
// the index says which they are.
func TestSafetensors(t *testing.T) {
	ctx, s := t.Context(), openLocal(t, t.TempDir())
	defer s.Close()
	index := func(of string) []byte {
		return fmt.Appendf(nil, `{"weight_map":{"a":"%[1]s-00001-of-00002.safetensors","b":"%[1]s-00002-of-00002.safetensors"}}`, of)
	}
	b := safetensors(100)
	put(t, s, "model-10.safetensors", b)
	put(t, s, "model-20.safetensors", b[:150])
	put(t, s, "model-30.safetensors", append(b[:len(b):len(b)], 0))
	put(t, s, "model-40.safetensors", []byte("version https://git-lfs.github.com/spec/v1\n"))
	put(t, s, "model-50.safetensors", nil)
	put(t, s, "60/model.safetensors", b)
	put(t, s, "out/config.json", []byte("{}"))
	put(t, s, "out/model.safetensors.index.json", index("model"))
	put(t, s, "out/model-00001-of-00002.safetensors", b)
	put(t, s, "out/model-00002-of-00002.safetensors", b)
	put(t, s, "at-70.safetensors.index.json", index("at-70"))
	put(t, s, "at-70-00001-of-00002.safetensors", b)
	put(t, s, "at-80.safetensors.index.json", index("at-80"))
	put(t, s, "at-80-00001-of-00002.safetensors", b)
	put(t, s, "at-80-00002-of-00002.safetensors", b[:150])
	put(t, s, "at-90-00001-of-00002.safetensors", b)
	put(t, s, "at-91.safetensors.index.json", []byte("{"))
	put(t, s, "at-92.safetensors.index.json", index("../x"))
	put(t, s, "part/model.safetensors.index.json", index("model"))
	put(t, s, "part/model-00001-of-00002.safetensors", b)
	put(t, s, "cut/model.safetensors.index.json", index("model"))
	put(t, s, "cut/model-00001-of-00002.safetensors", b)
	put(t, s, "cut/model-00002-of-00002.safetensors", b[:150])
	put(t, s, "checkpoint-95/model.safetensors", b)
	put(t, s, "checkpoint-95/optimizer.pt", torchFixture(t, "alone.pt"))
	want := `cut/model.safetensors.index.json safetensors 2 torn (model-00002-of-00002.safetensors: it has 150 bytes, 196 are needed)
out/model.safetensors.index.json safetensors 2 complete
part/model.safetensors.index.json safetensors 1 unchecked (model-00002-of-00002.safetensors is missing)
model-10.safetensors safetensors 1 complete
model-20.safetensors safetensors 1 torn (it has 150 bytes, 196 are needed)
model-30.safetensors safetensors 1 unchecked (it has 197 bytes, and its tensors end at 196)
model-40.safetensors safetensors 1 unchecked (it does not begin as a file of safetensors does)
model-50.safetensors safetensors 1 torn (it is empty)
60/model.safetensors safetensors 1 complete
at-70.safetensors.index.json safetensors 1 torn (at-70-00002-of-00002.safetensors is missing)
at-80.safetensors.index.json safetensors 2 torn (at-80-00002-of-00002.safetensors: it has 150 bytes, 196 are needed)
at-90.safetensors.index.json safetensors 1 unchecked (it has no file at-90.safetensors.index.json, which names all of its files)
at-91.safetensors.index.json safetensors 0 unchecked (at-91.safetensors.index.json: unexpected end of JSON input)
at-92.safetensors.index.json safetensors 0 unchecked (at-92.safetensors.index.json names ../x-00001-of-00002.safetensors, which is not called like one of its files)
checkpoint-95 directory 2 unchecked (nothing in it shows whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	must(t, format.SetRule(ctx, s, format.Rule{Format: pytorch.Safetensors}))
	if got := describe(list(t, s)); !strings.HasSuffix(got, want[strings.Index(want, "at-92"):]) {
		t.Errorf("by its rule:\n%s", got)
	}
	report, err := hdfsckpt.Repair(ctx, s, 0)
	must(t, err)
	var moved []string
	for _, a := range report.Aside {
		moved = append(moved, a.Name)
	}
	if got := strings.Join(moved, " "); got != "model-20.safetensors model-50.safetensors at-70.safetensors.index.json at-80.safetensors.index.json" {
		t.Errorf("moved aside: %s", got)
	}
	for _, name := range allFiles(t, s, ".") {
		for _, of := range []string{"model-20", "model-50", "at-70", "at-80"} {
			if strings.HasPrefix(name, of) {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// TestTensorsOfSafetensors reads what the library wrote, in one file and by an index.
func TestTensorsOfSafetensors(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	b, err := os.ReadFile("safetensors/testdata/few.safetensors")
	must(t, err)
	put(t, s, "m-1.safetensors", b)
	put(t, s, "m-2.safetensors.index.json", []byte(`{"weight_map":{"bias":"m-2-00001-of-00001.safetensors"}}`))
	put(t, s, "m-2-00001-of-00001.safetensors", b)
	for _, c := range list(t, s) {
		tensors, err := format.OpenTensors(t.Context(), s, &c)
		must(t, err)
		defer tensors.Close()
		x := tensors.Find("weight")
		if x == nil || len(tensors.All()) != 4 {
			t.Fatalf("%s has %v", c.Name, tensors.All())
		}
		if sum, err := tensor.Summarise(x.Kind, func() (io.Reader, error) { return x.Elements(0) }, 4); err != nil || sum.Elements != 6 || sum.Max != 5 || sum.Mean != 2.5 {
			t.Errorf("%s: %+v, %v", c.Name, sum, err)
		}
		if problems := verify(t, s, c); len(problems) > 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
	}
}

// TestShardsOfSafetensorsAreRetainedTogether: a program that saves over a model in
// several files can go back to the one before.
func TestShardsOfSafetensorsAreRetainedTogether(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	save := func(n int, put func(*testing.T, store.Store, string, []byte)) {
		put(t, s, "m-00001-of-00001.safetensors", safetensors(n))
		put(t, s, "m.safetensors.index.json", []byte(`{"weight_map":{"a":"m-00001-of-00001.safetensors"}}`))
	}
	save(10, publish)
	save(20, publish)
	if got := states(list(t, s)); got != "m.safetensors.index.json complete" {
		t.Errorf("listed are %s", got)
	}
	retained := listRetained(t, s)
	if len(retained) != 1 || retained[0].Kind != pytorch.Safetensors || !retained[0].Whole() || len(retained[0].Files) != 2 {
		t.Errorf("retained are %+v", retained)
	}
}
