package hdfsckpt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// putOrbax puts a checkpoint that Orbax wrote (testdata/orbax_save.py) into a directory,
// but for the files that change returns nil for.
func putOrbax(t *testing.T, s store.Store, dir string, change func(name string, content []byte) []byte) {
	t.Helper()
	const from = "testdata/orbax-10"
	must(t, filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		name = strings.TrimPrefix(name, from+"/")
		if change != nil {
			content = change(name, content)
		}
		if content != nil {
			put(t, s, path.Join(dir, name), content)
		}
		return err
	}))
}

// TestTensorsOfOrbax: they are found and read in either store.
func TestTensorsOfOrbax(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		putOrbax(t, s, "10", nil)
		c := list(t, s)[0]
		all, err := format.OpenTensors(t.Context(), s, &c)
		must(t, err)
		defer all.Close()
		got := ""
		for _, x := range all.All() {
			b, err := x.Read()
			must(t, err)
			got += fmt.Sprintf("%s %s %d %x\n", x.Name, x.Kind, x.Shape, b)
		}
		const want = "b float32 [] 0000803f\nw float64 [4] 0000000000000000000000000000f03f00000000000000400000000000000840\n"
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		name := "10/default/d/3bad5fc3699d96189903bae8ccf8b48f"
		b, err := store.ReadFile(t.Context(), s, name)
		must(t, err)
		put(t, s, name, b[:len(b)-1])
		if c := list(t, s)[0]; c.Whole() || c.Why != "default/d/3bad5fc3699d96189903bae8ccf8b48f, at byte 0: it has 250 bytes, and reaches to byte 251" {
			t.Errorf("%s", describe([]format.Checkpoint{c}))
		}
	})
}

// TestAnOrbaxArrayThatClaimsMuch is looked at in a moment, whatever its shape is.
func TestAnOrbaxArrayThatClaimsMuch(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	put(t, s, "7/_CHECKPOINT_METADATA", []byte(`{"item_handlers":"x","commit_timestamp_nsecs":1}`))
	put(t, s, "7/x/.zarray", []byte(`{"zarr_format":2,"shape":[1125899906842624],"chunks":[1],"dtype":"|u1","order":"C"}`))
	put(t, s, "7/x/4", []byte{1})
	for tree, wrong := range map[string]int{"{}": 0, `{"store_array_data_equal_to_fill_value": true}`: 1} {
		put(t, s, "7/_METADATA", []byte(tree))
		c := list(t, s)[0]
		problems := verify(t, s, c)
		if !c.Whole() || len(problems) != wrong {
			t.Errorf("%s: %v", describe([]format.Checkpoint{c}), problems)
		}
		all, err := format.OpenTensors(t.Context(), s, &c)
		must(t, err)
		x := all.All()[0]
		if _, err := x.Read(); !errors.Is(err, syscall.EFBIG) || x.Name != "x" {
			t.Errorf("%s is read: %v", x.Name, err)
		}
		must(t, all.Close())
	}
}

// TestAnOrbaxIndexThatIsTooLarge is named, by its item, and nothing is said of its checkpoint.
func TestAnOrbaxIndexThatIsTooLarge(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putOrbax(t, s, "10", func(name string, b []byte) []byte {
		if name == "default/manifest.ocdbt" {
			return make([]byte, 16<<20+1)
		}
		return b
	})
	c := list(t, s)[0]
	if c.State != format.Unchecked || !strings.Contains(c.Why, "10/default/manifest.ocdbt, of 16777217 bytes, is not looked into") {
		t.Errorf("%s", describe([]format.Checkpoint{c}))
	}
	if _, err := format.OpenTensors(t.Context(), s, &c); !errors.Is(err, syscall.EFBIG) || !strings.Contains(fmt.Sprint(err), "default: manifest.ocdbt has 16777217 bytes") {
		t.Errorf("its tensors are found: %v", err)
	}
}

// TestOrbaxCheckpoints: a directory is complete when its save says so; what has not got
// its name is moved aside.
func TestOrbaxCheckpoints(t *testing.T) {
	ctx, s := context.Background(), openLocal(t, t.TempDir())
	defer s.Close()
	uncommitted := func(name string, b []byte) []byte {
		if name == "commit_success.txt" {
			return nil
		}
		return bytes.Replace(b, []byte(`"commit_timestamp_nsecs": 1`), []byte(`"commit_timestamp_nsecs": null, "x": 1`), 1)
	}
	putOrbax(t, s, "10", nil)
	putOrbax(t, s, "step-20", nil)
	putOrbax(t, s, "best", nil)
	putOrbax(t, s, "30", uncommitted)
	putOrbax(t, s, "40", func(name string, b []byte) []byte {
		if strings.HasPrefix(name, "default/") {
			return nil
		}
		return b
	})
	putOrbax(t, s, "50", func(name string, b []byte) []byte {
		if name == "_CHECKPOINT_METADATA" {
			return b[:20]
		}
		return b
	})
	putOrbax(t, s, "60.orbax-checkpoint-tmp", uncommitted)
	putOrbax(t, s, "70.orbax-checkpoint-tmp-1732490000", uncommitted)
	putOrbax(t, s, "mine.orbax-checkpoint-tmp", uncommitted)
	want := `best orbax 11 complete
mine.orbax-checkpoint-tmp orbax 10 torn (its name is that of a save that has not ended)
10 orbax 11 complete
step-20 orbax 11 complete
30 orbax 10 unchecked (_CHECKPOINT_METADATA does not say that it was committed)
40 orbax 2 unchecked (there is nothing of its item default)
50 orbax 11 unchecked (_CHECKPOINT_METADATA is not readable: unexpected end of JSON input)
60.orbax-checkpoint-tmp orbax 10 torn (its name is that of a save that has not ended)
70.orbax-checkpoint-tmp-1732490000 orbax 10 torn (its name is that of a save that has not ended)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(ctx, s, 0)
	if err != nil || len(report.Aside) != 2 || report.Aside[0].Step != 60 || report.Aside[1].Step != 70 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	seal(t, s, "10")
	if got := list(t, s); got[2].Name != "10" || got[2].State != format.Sealed {
		t.Errorf("%s", describe(got))
	}
}
