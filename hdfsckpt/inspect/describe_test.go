package inspect_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
)

// saveTensorFlow puts a checkpoint of TensorFlow, of 4 shards, into a directory as sharded.ckpt-STEP.
func saveTensorFlow(t *testing.T, dir, step string) {
	t.Helper()
	files, err := filepath.Glob("../tfbundle/testdata/sharded.ckpt-1200.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strings.Replace(filepath.Base(f), "1200", step, 1)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRestart: tasks continue from what the pointer names, if that is complete, and else from
// the newest complete one; and that holds whichever checkpoints are described.
func TestRestart(t *testing.T) {
	for pointer, want := range map[string]string{"sharded.ckpt-100": "100", "sharded.ckpt-300": "200", "": "200"} {
		dir := t.TempDir()
		saveTensorFlow(t, dir, "100")
		saveTensorFlow(t, dir, "200")
		saveTensorFlow(t, dir, "300")
		if err := os.Truncate(filepath.Join(dir, "sharded.ckpt-300.data-00001-of-00004"), 0); err != nil {
			t.Fatal(err)
		}
		if pointer != "" {
			if err := os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(`model_checkpoint_path: "`+pointer+`"`+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, err := store.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		list, err := hdfsckpt.List(t.Context(), s)
		if err != nil || len(list) != 3 {
			t.Fatalf("%+v, %v", list, err)
		}
		for i, c := range inspect.Describe(dir, list, list) {
			alone := inspect.Describe(dir, list[i:i+1], list)[0]
			if name := "sharded.ckpt-" + want; c.Restart != (c.Name == name) || alone != c && (alone.Restart != c.Restart || alone.Newest != c.Newest) {
				t.Errorf("the pointer names %q, and of %s it is said: %+v, %+v", pointer, c.Name, c, alone)
			}
		}
	}
}

// TestLike: a text is in the name, a pattern is all of it; neither need be UTF-8.
func TestLike(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "a", true}, {"b.w", "a/b.weight", true}, {"b.w", "abxw", false}, {"*.w?", "a/b.w1", true}, {"*.w?", "a/b.w12", false}, {"a*", "ba", false}, {"(*", "(x)", true},
		{"\xff", "a\xffb", true}, {"\xff", "a", false}, {"\xff*", "\xffb", true}, {"\xff*", "ab", false}, {"?b", "\xffb", true}, {"*\n?", "a\nb", true},
		{"*", "", true}, {"?", "", false}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "abbcc", true}, {"a*b*c", "acb", false}, {"*ab", "aab", true}, {"*?b", "b", false},
		{"a*?c", "abcdc", true}, {"**a**", "xax", true}, {"?*?", "ä", false}, {"?*?", "äö", true}, {"a?", "a", false}, {"*a*", "b", false}, {"a", "ba", true},
		{strings.Repeat("*", 60_000) + "b", strings.Repeat("a", 1000), false}, {strings.Repeat("*?", 500), strings.Repeat("a", 1000), true},
	} {
		began := time.Now()
		if got := inspect.Like(c.pattern)(c.name); got != c.want {
			t.Errorf("%.50q is like %.50q: %v", c.name, c.pattern, got)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%v are spent on a pattern of %d bytes", took, len(c.pattern))
		}
	}
}
