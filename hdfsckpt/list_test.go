package hdfsckpt_test

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// fixture is a checkpoint that TensorFlow wrote, of four shards.
const fixture = "sharded.ckpt-1200"

var old = time.Now().Add(-time.Hour)

// put writes a file that counts as old.
func put(t testing.TB, s store.Store, name string, content []byte) {
	t.Helper()
	ctx := context.Background()
	if err := store.MkdirAll(ctx, s, path.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(ctx, s, name, content, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Chtimes(ctx, name, old, old); err != nil {
		t.Fatal(err)
	}
}

// putCheckpoint puts the fixture under a prefix, but for the files that change
// returns nil for.
func putCheckpoint(t testing.TB, s store.Store, prefix string, change func(suffix string, content []byte) []byte) {
	t.Helper()
	files, err := filepath.Glob("tfbundle/testdata/" + fixture + ".[di]*")
	if err != nil || len(files) != 5 {
		t.Fatalf("fixtures: %v, %v", files, err)
	}
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		suffix := strings.TrimPrefix(filepath.Base(f), fixture)
		if change != nil {
			content = change(suffix, content)
		}
		if content != nil {
			put(t, s, prefix+suffix, content)
		}
	}
}

// without leaves a file out.
func without(suffix string) func(string, []byte) []byte {
	return func(s string, b []byte) []byte {
		if s == suffix {
			return nil
		}
		return b
	}
}

func list(t testing.TB, s store.Store) []format.Checkpoint {
	t.Helper()
	found, err := hdfsckpt.List(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func describe(list []format.Checkpoint) string {
	var b strings.Builder
	for _, c := range list {
		fmt.Fprintf(&b, "%s %s %d %s", c.Name, c.Kind, c.Shards, c.State)
		if c.Why != "" {
			fmt.Fprintf(&b, " (%s)", c.Why)
		}
		if c.Current {
			b.WriteString(" current")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestCheckpoints(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	if found := list(t, s); len(found) != 0 || format.NewestComplete(found) != nil {
		t.Errorf("an empty store has %v", found)
	}
	putCheckpoint(t, s, "model.ckpt-100", nil)
	putCheckpoint(t, s, "model.ckpt-20", nil)
	put(t, s, "model.ckpt-100.meta", []byte("graph"))
	putCheckpoint(t, s, "model.ckpt-300", without(".data-00002-of-00004"))
	putCheckpoint(t, s, "model.ckpt-400", without(".index"))
	putCheckpoint(t, s, "model.ckpt-500", func(suffix string, b []byte) []byte {
		if suffix == ".index" {
			return b[:len(b)-10]
		}
		return b
	})
	putCheckpoint(t, s, "model.ckpt-600", func(suffix string, b []byte) []byte {
		if suffix == ".data-00000-of-00004" {
			return b[:len(b)-1]
		}
		return b
	})
	putCheckpoint(t, s, "eval/best", nil)
	put(t, s, "model.ckpt-700_temp/part-00000-of-00002.data-00000-of-00001", []byte("x"))
	put(t, s, "step-30/ps-0.json", []byte("{}"))
	put(t, s, "step-30/ps-1.json", []byte("{}"))
	put(t, s, "step-30/COMMITTED", []byte(`{"step":30,"shards":2}`))
	put(t, s, "step-40/ps-0.json", []byte("{}"))
	put(t, s, "step-50/ps-0.json", []byte("{}"))
	put(t, s, "step-50/COMMITTED", []byte(`{"step":50,"shards":2}`))
	put(t, s, "checkpoint", []byte("model_checkpoint_path: \"/tmp/train_logs/model.ckpt-100\"\nall_model_checkpoint_paths: \"/tmp/train_logs/model.ckpt-20\"\n"))
	put(t, s, "events.out.tfevents.1", []byte("x"))
	want := `eval/best tensorflow 4 complete
model.ckpt-20 tensorflow 4 complete
step-30 plain 2 complete
step-40 plain 1 torn (it has no file COMMITTED: the save did not get that far)
step-50 plain 1 torn (it has 1 shards, COMMITTED says 2)
model.ckpt-100 tensorflow 4 complete current
model.ckpt-300 tensorflow 4 torn (model.ckpt-300.data-00002-of-00004 is missing)
model.ckpt-400 tensorflow 4 torn (it has no index: the save did not get that far)
model.ckpt-500 tensorflow 4 torn (model.ckpt-500.index: not a whole TensorFlow index: it does not end as an index does: cut off, or no index)
model.ckpt-600 tensorflow 4 torn (model.ckpt-600.data-00000-of-00004 has 2719 bytes, 2720 are needed)
`
	found := list(t, s)
	if got := describe(found); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	newest := format.NewestComplete(found)
	if newest == nil || newest.Name != "model.ckpt-100" || newest.Step != 100 || len(newest.Files) != 6 || newest.Size != 2720+40+80+120+439+5 || newest.Time.Sub(old).Abs() > time.Second {
		t.Errorf("newest complete: %+v", newest)
	}
	if err := s.Chtimes(context.Background(), "model.ckpt-400.data-00000-of-00004", time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, c := range list(t, s) {
		if c.Name == "model.ckpt-400" && c.State != format.InProgress {
			t.Errorf("one that is being written is %s", c.State)
		}
	}
}
