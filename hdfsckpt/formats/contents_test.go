package formats_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// fixtures puts checkpoints of all formats whose tensors can be read into a store.
func fixtures(t *testing.T) (dir string, s store.Store, list []format.Checkpoint) {
	t.Helper()
	dir = t.TempDir()
	for from, to := range map[string]string{
		"tfbundle/testdata/*.ckpt-*": ".", "torchfile/testdata/*.p*": ".", "torchfile/testdata/dcp-300/*": "dcp-300",
		"torchfile/testdata/dcp-300/.metadata": "dcp-300", "safetensors/testdata/*.safetensors": ".",
		"testdata/mxnet/*.params": "mxnet", "testdata/keras/model.*": "keras", "testdata/trainer/checkpoint-1/*": "trainer/checkpoint-1", "testdata/trainer/checkpoint-2/*": "trainer/checkpoint-2",
		"testdata/deepspeed/latest": "deepspeed", "testdata/deepspeed/global_step1/*": "deepspeed/global_step1",
	} {
		files, err := filepath.Glob(filepath.Join("..", from))
		if err != nil || len(files) == 0 {
			t.Fatalf("there is no %s: %v", from, err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err == nil {
				err = os.MkdirAll(filepath.Join(dir, to), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, to, filepath.Base(f)), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "orbax/10"), os.DirFS("../testdata/orbax-10")); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if err := os.Chtimes(filepath.Join(dir, "deepspeed/latest"), now, now); err != nil { // it is written last
		t.Fatal(err)
	}
	s, err := store.NewLocal(dir)
	if err == nil {
		t.Cleanup(func() { s.Close() })
		list, err = format.Search{}.List(t.Context(), s, formats.All)
	}
	if err != nil || len(list) < 8 {
		t.Fatalf("%d checkpoints are found: %v", len(list), err)
	}
	return dir, s, list
}

// TestTensorsAreReadInPieces: a reader gives what Read returns, and without an order the same
// elements; and it holds none of that in memory where that can be.
func TestTensorsAreReadInPieces(t *testing.T) {
	_, s, list := fixtures(t)
	var held []string
	kinds := map[format.Kind]int{}
	for _, c := range list {
		if !c.Whole() {
			continue
		}
		all, err := format.OpenTensors(t.Context(), s, &c)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		defer all.Close()
		for _, x := range all.All() {
			want, err := x.Read()
			if err != nil {
				continue // strings, and kinds that are not known
			}
			kinds[c.Kind]++
			rows, err := read(x.Rows(0))
			if err != nil {
				held = append(held, x.Name)
				rows, err = read(x.Rows(1 << 20))
			}
			if err != nil || !bytes.Equal(rows, want) {
				t.Errorf("%s of %s is read as %d bytes, %v; want %d", x.Name, c.Name, len(rows), err, len(want))
			}
			elements, err := read(x.Elements(1 << 20))
			if err != nil || !slices.Equal(sorted(x.Kind, elements), sorted(x.Kind, want)) {
				t.Errorf("%s of %s: the elements are not the same: %v", x.Name, c.Name, err)
			}
		}
	}
	if kinds[formats.TensorFlow] == 0 || kinds[pytorch.Torch] == 0 || kinds[pytorch.Distributed] == 0 || kinds[pytorch.Safetensors] == 0 || kinds[pytorch.HuggingFace] == 0 || kinds[pytorch.DeepSpeed] == 0 || kinds[formats.MXNet] == 0 || kinds[formats.Keras] == 0 || kinds[formats.Orbax] == 0 {
		t.Errorf("tensors were read of %v", kinds)
	}
	slices.Sort(held)
	if got := strings.Join(slices.Compact(held), " "); got != heldInMemory {
		t.Errorf("in memory are put together %q, want %q", got, heldInMemory)
	}
}

// heldInMemory are the tensors of the fixtures that are cut otherwise than by rows, or are
// views of others.
const heldInMemory = "model.columns shared.1 shared.2 shared.3"

func read(r io.Reader, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

func sorted(k tensor.Kind, b []byte) []string {
	var list []string
	for width := max(1, k.Size()); len(b) >= width; b = b[width:] {
		list = append(list, string(b[:width]))
	}
	slices.Sort(list)
	return list
}

// TestTensorsOfTrainers: of a model that is in one file, of one that was cut, and of one with its
// optimizer in parts.
func TestTensorsOfTrainers(t *testing.T) {
	_, s, list := fixtures(t)
	for name, want := range map[string]string{
		"trainer/checkpoint-1":   "first.bias float32 [8] model.safetensors; first.weight float32 [8 4] model.safetensors; second.bias float32 [2] model.safetensors; second.weight float32 [2 8] model.safetensors",
		"trainer/checkpoint-2":   "first.bias float32 [8] model-00002-of-00003.safetensors; first.weight float32 [8 4] model-00001-of-00003.safetensors; second.bias float32 [2] model-00003-of-00003.safetensors; second.weight float32 [2 8] model-00002-of-00003.safetensors",
		"deepspeed/global_step1": "module.0.bias bfloat16 [3] mp_rank_00_model_states.pt; module.0.weight bfloat16 [3 4] mp_rank_00_model_states.pt; module.1.bias bfloat16 [1] mp_rank_00_model_states.pt; module.1.weight bfloat16 [1 3] mp_rank_00_model_states.pt",
	} {
		i := slices.IndexFunc(list, func(c format.Checkpoint) bool { return c.Name == name })
		if i < 0 {
			t.Fatalf("%s is not found", name)
		}
		all, err := format.OpenTensors(t.Context(), s, &list[i])
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		var got []string
		optimizer := 0
		for _, x := range all.All() {
			if strings.HasPrefix(x.Name, "optimizer.") {
				optimizer++
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %v %s", x.Name, x.Kind, x.Shape, filepath.Base(x.File)))
		}
		if text := strings.Join(got, "; "); text != want || strings.HasPrefix(name, "trainer") != (optimizer > 0) {
			t.Errorf("%s has, beside %d of the optimizer,\n%s, want\n%s", name, optimizer, text, want)
		}
		parts, problems, err := list[i].Contents().Parts(t.Context(), s, &list[i])
		if err != nil || len(problems) > 0 || len(parts) == 0 {
			t.Errorf("%s has %d parts, %v, %v", name, len(parts), problems, err)
		}
	}
}

// TestPiecesAreChecked: a byte that is wrong fails the reader at its end, where the format has
// checksums; a file that ends too early does in any case.
func TestPiecesAreChecked(t *testing.T) {
	dir, s, list := fixtures(t)
	for file, name := range map[string]string{
		"sharded.ckpt-1200.data-00000-of-00004": "", "train-40.pt": "", "dcp-300/__0_0.distcp": "", "few.safetensors": "weight",
	} {
		path := filepath.Join(dir, file)
		i := slices.IndexFunc(list, func(c format.Checkpoint) bool {
			return slices.ContainsFunc(c.Files, func(f format.File) bool { return f.Name == file })
		})
		all, err := format.OpenTensors(t.Context(), s, &list[i])
		if err != nil {
			t.Fatal(err)
		}
		defer all.Close()
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// Somewhere in the data there are bytes of a tensor.
		failed := 0
		for at := range good {
			if name != "" && at != len(good)-1 || name == "" && at%7 != 0 {
				continue
			}
			bad := slices.Clone(good)
			bad[at] ^= 0x40
			if name != "" {
				bad = bad[:at]
			}
			if err := os.WriteFile(path, bad, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, x := range all.All() {
				if x.Kind == tensor.StringKind || x.Bytes == 0 {
					continue
				}
				want, readErr := x.Read()
				got, err := read(x.Elements(1 << 20))
				if readErr != nil && err == nil {
					t.Errorf("%s, byte %d: %s is read all the same: %d bytes, and not as %d (%v)", file, at, x.Name, len(got), len(want), readErr)
				}
				if err != nil {
					failed++
				}
			}
		}
		if failed == 0 {
			t.Errorf("%s: nothing fails", file)
		}
		if err := os.WriteFile(path, good, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestALargeIndexIsNotRead: where memory is scarce.
func TestALargeIndexIsNotRead(t *testing.T) {
	_, s, list := fixtures(t)
	for _, c := range list {
		if !c.Whole() || c.Contents() == nil {
			continue
		}
		if _, err := format.OpenTensorsWithin(t.Context(), s, &c, 20); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("%s: %v", c.Name, err)
		}
		all, err := format.OpenTensorsWithin(t.Context(), s, &c, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		all.Close()
	}
}
