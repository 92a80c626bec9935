package hdfsckpt_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/test/pyenv"
)

func kerasFixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/keras", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestKerasCheckpoints: a file is complete by what stands at its end or says where that
// is; HDF5 of others is left alone.
func TestKerasCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	archive, weights, legacy := kerasFixture(t, "model.keras"), kerasFixture(t, "model.weights.h5"), kerasFixture(t, "model.h5")
	newest := kerasFixture(t, "latest.weights.h5")
	put(t, s, "model_10.keras", archive)
	put(t, s, "model_11.weights.h5", weights)
	put(t, s, "model_12.h5", legacy)
	put(t, s, "model_13.weights.h5", newest)
	put(t, s, "model_14.weights.h5", kerasFixture(t, "earliest.weights.h5"))
	put(t, s, "model.05-0.45.keras", archive)
	put(t, s, "16/model.weights.h5", weights)
	put(t, s, "model_20.keras", archive[:len(archive)-9])
	put(t, s, "model_21.weights.h5", weights[:len(weights)-9])
	put(t, s, "model_22.h5", legacy[:len(legacy)-9])
	put(t, s, "model_23.weights.h5", newest[:len(newest)-1])
	put(t, s, "model_24.keras", nil)
	put(t, s, "model_30.keras", []byte("{}"))
	put(t, s, "model_31.keras", torchFixture(t, "alone.pt"))
	put(t, s, "model_32.weights.h5", append(weights[:len(weights):len(weights)], 0))
	put(t, s, "model_33.weights.h5", bytes.Repeat([]byte("x"), 100))
	open := bytes.Clone(newest)
	open[11] |= 1 // as the library marks what is being written
	put(t, s, "model_34.weights.h5", open)
	put(t, s, "data_2024.h5", kerasFixture(t, "earliest.weights.h5"))
	put(t, s, "data_2025.h5", kerasFixture(t, "earliest.weights.h5")[:90])
	put(t, s, "data_2026.h5", nil)
	want := `model.05-0.45.keras keras 1 complete
model_10.keras keras 1 complete
model_11.weights.h5 keras 1 complete
model_12.h5 keras 1 complete
model_13.weights.h5 keras 1 complete
model_14.weights.h5 keras 1 complete
16/model.weights.h5 keras 1 complete
model_20.keras keras 1 torn (its directory, at the end: zip: not a valid zip file)
model_21.weights.h5 keras 1 torn (it has 14503 bytes, 14512 are needed)
model_22.h5 keras 1 torn (it has 16271 bytes, 16280 are needed)
model_23.weights.h5 keras 1 torn (it has 2063 bytes, 2064 are needed)
model_24.keras keras 1 torn (it is empty)
model_30.keras keras 1 unchecked (it does not begin as Keras's files do)
model_31.keras keras 1 unchecked (it is an archive without Keras's config.json)
model_32.weights.h5 keras 1 unchecked (it has 14513 bytes, and says that it ends at 14512)
model_33.weights.h5 keras 1 unchecked (it does not begin as HDF5 does)
model_34.weights.h5 keras 1 unchecked (it was not closed by the program that wrote it)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 5 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	publish(t, s, "last.keras", archive)
	publish(t, s, "last.keras", kerasFixture(t, "model.keras"))
	if retained := listRetained(t, s); len(retained) != 1 || retained[0].Kind != formats.Keras || !retained[0].Whole() {
		t.Errorf("retained are %+v", retained)
	}
}

// TestLongRealKeras: what Keras saves has the tensors that h5py reads in it, in each form and of
// each type, on HDFS too; they are verified, and compared with those of another step.
func TestLongRealKeras(t *testing.T) {
	ctx := t.Context()
	var said map[string]map[string][3]any // type, shape and bytes
	dir := savedBy(t, pyenv.TensorFlow, "keras_real.py", &said)
	s := openLocal(t, dir)
	defer s.Close()
	found := map[string]*format.Checkpoint{}
	for _, c := range list(t, s) {
		found[c.Name] = &c
		want := said[c.Name]
		if c.Kind != formats.Keras || !c.Whole() || len(want) < 5 {
			t.Errorf("%s is %s %s (%s), and has %d datasets", c.Name, c.Kind, c.State, c.Why, len(want))
			continue
		}
		if problems := verify(t, s, c); len(problems) != 0 {
			t.Errorf("%s: %v", c.Name, problems)
		}
		kinds := agreesWithH5py(t, s, &c, want)
		if strings.HasPrefix(c.Name, "model") && (kinds["bfloat16"] == 0 || kinds["float16"] == 0 || kinds["float32"] == 0 || kinds["float64"] == 0 || kinds["int64"] == 0) {
			t.Errorf("%s has tensors of the types %v", c.Name, kinds)
		}
	}
	onHDFS := openHDFS(t)
	defer onHDFS.Close()
	for _, name := range []string{"model_1.keras", "packed_3.keras", "model_2.weights.h5"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		put(t, onHDFS, name, b)
		agreesWithH5py(t, onHDFS, found[name], said[name])
	}
	if len(found) != len(said) || len(said) != 10 {
		t.Errorf("%d checkpoints are found, h5py reads %d", len(found), len(said))
	}
	for _, name := range []string{"model_%d.keras", "model_%d.weights.h5", "legacy_%d.h5"} {
		a, err := format.OpenTensors(ctx, s, found[fmt.Sprintf(name, 1)])
		must(t, err)
		defer a.Close()
		b, err := format.OpenTensors(ctx, s, found[fmt.Sprintf(name, 2)])
		must(t, err)
		defer b.Close()
		changes, err := hdfsckpt.Diff(a, b, hdfsckpt.DiffOptions{Limit: 1 << 20})
		must(t, err)
		different, notCompared := 0, 0
		for _, c := range changes {
			switch {
			case c.Different && c.Norm > 0:
				different++
			case c.NotCompared != "" && c.From.Kind == "opaque of 2 bytes":
				notCompared++ // bfloat16, of which the legacy form does not say what it is
			default:
				t.Errorf("%s: %+v", name, c)
			}
		}
		if different < 20 || notCompared > 0 != strings.HasPrefix(name, "legacy") {
			t.Errorf("%s: %d tensors differ, %d are not compared", name, different, notCompared)
		}
	}
}

// agreesWithH5py compares the tensors of a checkpoint with what h5py says: for each its type,
// its shape, and its bytes in base64. It returns how many of each type there are.
func agreesWithH5py(t *testing.T, s store.Store, c *format.Checkpoint, want map[string][3]any) map[string]int {
	t.Helper()
	tensors, err := format.OpenTensors(t.Context(), s, c)
	must(t, err)
	defer tensors.Close()
	if len(tensors.All()) != len(want) {
		t.Errorf("%s has %d tensors, h5py reads %d", c.Name, len(tensors.All()), len(want))
	}
	kinds := map[string]int{}
	for _, x := range tensors.All() {
		w := want[x.Name]
		if shape := fmt.Sprint(x.Shape); shape != fmt.Sprint(w[1]) {
			t.Errorf("%s of %s has the shape %s, h5py says %v", x.Name, c.Name, shape, w[1])
		}
		got, err := x.Read()
		if w[0] == nil {
			if err == nil {
				t.Errorf("%s of %s is read as %s", x.Name, c.Name, x.Kind)
			}
			continue
		}
		value, bad := base64.StdEncoding.DecodeString(w[2].(string))
		must(t, bad)
		if err != nil || string(x.Kind) != w[0] || !bytes.Equal(got, value) || x.Bytes != int64(len(value)) {
			t.Errorf("%s of %s is %s, %x, %v; h5py says %v, %x", x.Name, c.Name, x.Kind, got, err, w[0], value)
		}
		kinds[string(x.Kind)]++
	}
	return kinds
}

// TestKerasIsVerified: what was torn behind the beginning of a file of HDF5, and any byte in an
// archive, though neither shows in lengths; what is only not read is no problem.
func TestKerasIsVerified(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	hole := func(name string, from int) []byte {
		b := kerasFixture(t, name)
		clear(b[from:])
		return b
	}
	flipped := func(at int) []byte {
		b := kerasFixture(t, "model.keras")
		b[at] ^= 1
		return b
	}
	weights := bytes.Index(kerasFixture(t, "model.keras"), []byte("\x89HDF"))
	root := bytes.Index(kerasFixture(t, "model.weights.h5"), []byte("SNOD"))
	other := kerasFixture(t, "earliest.weights.h5")
	layout := bytes.Index(other, []byte("\x08\x00\x18\x00\x00\x00\x00\x00\x03\x01"))
	other[layout+8] = 2 // the version of the layout
	put(t, s, "model_1.weights.h5", hole("model.weights.h5", 4096))
	put(t, s, "model_2.h5", hole("model.h5", 8192))
	put(t, s, "model_3.weights.h5", hole("model.weights.h5", root))
	put(t, s, "model_4.keras", flipped(weights-500))
	put(t, s, "model_5.keras", flipped(weights+3000))
	put(t, s, "model_6.weights.h5", other)
	put(t, s, "model_7.weights.h5", kerasFixture(t, "model.weights.h5"))
	want := map[string]string{
		"model_1.weights.h5": "layers: at byte 6688 there is no heap of names",
		"model_2.h5":         "there is no",
		"model_3.weights.h5": "does not begin with SNOD",
		"model_4.keras":      "the checksum of its member config.json is",
		"model_5.keras":      "the checksum of its member model.weights.h5 is",
		"model_6.weights.h5": "",
		"model_7.weights.h5": "",
	}
	for _, c := range list(t, s) {
		if c.State != format.Complete {
			t.Errorf("%s is %s (%s): as before, its length alone decides", c.Name, c.State, c.Why)
		}
		problems := fmt.Sprint(verify(t, s, c))
		if w := want[c.Name]; w == "" && problems != "[]" || !strings.Contains(problems, w) {
			t.Errorf("%s: %s, want %q", c.Name, problems, w)
		}
		delete(want, c.Name)
	}
	if len(want) > 0 {
		t.Errorf("not found are %v", want)
	}
}
