package hdfsckpt_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/test/pyenv"
)

// TestLongRealOrbax: names, shapes, kinds and values of arrays are those that Orbax restores, in
// all the ways in which it lays them out; and what is lost of them is seen.
func TestLongRealOrbax(t *testing.T) {
	t.Run("newest", func(t *testing.T) { testOrbax(t, pyenv.Orbax) })
	t.Run("older", func(t *testing.T) { testOrbax(t, pyenv.OlderOrbax) })
}

func testOrbax(t *testing.T, e pyenv.Environment) {
	ctx := t.Context()
	var restored map[string]map[string]orbaxRestored
	dir := savedBy(t, e.Make, "orbax_tensors.py", &restored)
	s := openLocal(t, dir)
	defer s.Close()
	found := list(t, s)
	if len(found) != len(restored) {
		t.Fatalf("of %d checkpoints there are found\n%s", len(restored), describe(found))
	}
	for _, c := range found {
		unmerged := c.Name == "managed/unmerged" // which Orbax does not restore
		if c.Whole() == unmerged {
			t.Errorf("%s is %s: %s", c.Name, c.State, c.Why)
		}
		problems, err := hdfsckpt.Verify(ctx, s, c, nil)
		if err != nil || len(problems) > 0 != unmerged {
			t.Errorf("%s: %v, %v", c.Name, problems, err)
		}
		compareWithOrbax(t, s, &c, restored[c.Name])
	}
	for _, name := range []string{"managed/20", "cut3"} {
		t.Run(filepath.Base(name), func(t *testing.T) { testLostOrbax(t, dir, name) })
	}
	testListingReadsTheIndex(t, s, found)
	t.Run("files", func(t *testing.T) { testLostChunks(t, s, dir) })
}

// orbaxRestored is an array as Orbax restores it.
type orbaxRestored struct {
	kind, shape string
	value       []byte
}

func (r *orbaxRestored) UnmarshalJSON(b []byte) error {
	var shape []int64
	var value string
	if err := json.Unmarshal(b, &[]any{&r.kind, &shape, &value}); err != nil {
		return err
	}
	r.shape = fmt.Sprint(shape)
	var err error
	r.value, err = base64.StdEncoding.DecodeString(value)
	return err
}

func compareWithOrbax(t *testing.T, s store.Store, c *format.Checkpoint, want map[string]orbaxRestored) {
	t.Helper()
	all, err := format.OpenTensorsWithin(t.Context(), s, c, 512<<10)
	if err != nil {
		t.Error(err)
		return
	}
	defer all.Close()
	if names := slices.Sorted(maps.Keys(want)); len(names) != len(all.All()) {
		t.Errorf("%s has %d tensors instead of %q", c.Name, len(all.All()), names)
	}
	for _, x := range all.All() {
		w := want[x.Name]
		if string(x.Kind) != w.kind || fmt.Sprint(x.Shape) != w.shape || x.Bytes != int64(len(w.value)) {
			t.Errorf("%s of %s is %s %d of %d bytes, want %s %s of %d", x.Name, c.Name, x.Kind, x.Shape, x.Bytes, w.kind, w.shape, len(w.value))
			continue
		}
		got, err := x.Read()
		if err != nil || !bytes.Equal(got, w.value) {
			t.Errorf("%s of %s: %v, %x instead of %x", x.Name, c.Name, err, got, w.value)
		}
		if got, err = readAll(x.Rows(1 << 20)); err != nil || !bytes.Equal(got, w.value) {
			t.Errorf("%s of %s by rows: %v, %x instead of %x", x.Name, c.Name, err, got, w.value)
		}
		got, err = readAll(x.Elements(0))
		if err != nil || !slices.Equal(elements(got, x.Kind.Size()), elements(w.value, x.Kind.Size())) {
			t.Errorf("%s of %s in some order: %v, %x instead of %x", x.Name, c.Name, err, got, w.value)
		}
		if x.Pieces == 1 && !slices.ContainsFunc(c.Files, func(f format.File) bool { return f.Name == x.File }) {
			t.Errorf("%s of %s is in %q", x.Name, c.Name, x.File)
		}
	}
}

func readAll(r io.Reader, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// elements are sorted.
func elements(b []byte, width int) []string {
	var list []string
	for ; len(b) >= width; b = b[width:] {
		list = append(list, string(b[:width]))
	}
	slices.Sort(list)
	return list
}

// testLostOrbax loses, cuts and changes each file of a checkpoint of stores of keys.
func testLostOrbax(t *testing.T, from, name string) {
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "30"), os.DirFS(filepath.Join(from, name))))
	s := openLocal(t, dir)
	defer s.Close()
	root := filepath.Join(dir, "30")
	torn, kept := 0, 0
	must(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(file) == "_CHECKPOINT_METADATA" || filepath.Base(file) == "commit_success.txt" {
			return err
		}
		content, err := os.ReadFile(file)
		must(t, err)
		rel := strings.TrimPrefix(strings.TrimPrefix(file, root+"/"), "default/")
		large := name == "managed/20" && len(content) > 10_000 // values that are not in nodes
		index := rel == "manifest.ocdbt" || strings.HasPrefix(rel, "d/")
		judge := func(change string) (broken bool) {
			found := list(t, s)
			problems, err := hdfsckpt.Verify(t.Context(), s, found[0], nil)
			must(t, err)
			broken = !found[0].Whole()
			if (len(problems) > 0) != broken {
				t.Errorf("%s %s: it is %s (%s), and verified with %v", rel, change, found[0].State, found[0].Why, problems)
			}
			if (index || change == "halved" && large && strings.HasPrefix(rel, "ocdbt.")) && !broken {
				t.Errorf("%s %s: it is %s", rel, change, found[0].State)
			}
			return broken
		}
		must(t, os.Remove(file))
		judge("lost")
		must(t, os.WriteFile(file, content[:len(content)-1], 0o644))
		judge("cut")
		must(t, os.WriteFile(file, content[:len(content)/2], 0o644))
		if judge("halved") {
			torn++
		} else {
			kept++ // what no restore needs: former versions of what a process wrote
		}
		for at := 0; index && at < len(content); at += 1 + len(content)/20 {
			content[at] ^= 4
			must(t, os.WriteFile(file, content, 0o644))
			judge(fmt.Sprintf("changed at %d", at))
			content[at] ^= 4
		}
		must(t, os.WriteFile(file, content, 0o644))
		return nil
	}))
	t.Logf("without a half of them %d files leave it torn, %d do not", torn, kept)
	if found := list(t, s); torn < 2 || !found[0].Whole() {
		t.Errorf("in the end it is %s: %s", found[0].State, found[0].Why)
	}
}

// countingStore counts the bytes that are read.
type countingStore struct {
	store.Store
	read atomic.Int64
}

type countingReader struct {
	store.Reader
	of *countingStore
}

func (s *countingStore) Open(ctx context.Context, name string) (store.Reader, error) {
	r, err := s.Store.Open(ctx, name)
	return countingReader{r, s}, err
}

func (r countingReader) ReadAt(b []byte, offset int64) (int, error) {
	n, err := r.Reader.ReadAt(b, offset)
	r.of.read.Add(int64(n))
	return n, err
}

// testListingReadsTheIndex: to find the tensors no values are read.
func testListingReadsTheIndex(t *testing.T, s store.Store, found []format.Checkpoint) {
	i := slices.IndexFunc(found, func(c format.Checkpoint) bool { return c.Name == "managed/20" })
	counting := &countingStore{Store: s}
	all, err := format.OpenTensors(t.Context(), counting, &found[i])
	must(t, err)
	defer all.Close()
	if n := counting.read.Load(); n == 0 || n > 2000 {
		t.Errorf("of %d bytes %d are read to find the tensors", found[i].Size, n)
	}
	want := all.Find("rows").Bytes
	if _, err := all.Find("rows").Read(); err != nil || counting.read.Load() > 2000+want {
		t.Errorf("%d bytes are read of a tensor of %d, %v", counting.read.Load(), want, err)
	}
}

// testLostChunks loses chunks that are files.
func testLostChunks(t *testing.T, s store.Store, dir string) {
	for file, want := range map[string]string{
		"zarr/params.dense.kernel/0.1":          "its chunk 0.1 is missing",
		"zarr3-files/params.dense.kernel/c/0/1": "its chunk c/0/1 is missing",
		"zarr/zeros/.zarray":                    "",
	} {
		must(t, os.Remove(filepath.Join(dir, file)))
		name, _, _ := strings.Cut(file, "/")
		found := list(t, s)
		i := slices.IndexFunc(found, func(c format.Checkpoint) bool { return c.Name == name })
		problems, err := hdfsckpt.Verify(t.Context(), s, found[i], nil)
		must(t, err)
		if want != "" && (len(problems) != 1 || problems[0].Tensor != "params.dense.kernel" || problems[0].Text != want) {
			t.Errorf("without %s: %v", file, problems)
		}
	}
}
