package checkpoint

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestFilesThatInputsHideAreTold: what a checkpoint directory in place of the tasks' working
// directory has under the names of the job's files is told, once, and nothing else is.
func TestFilesThatInputsHideAreTold(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, name := range []string{
		filepath.Join(dir, "cfg"), filepath.Join(dir, "lib/a"), filepath.Join(dir, "file"), filepath.Join(dir, "model.pt"), filepath.Join(dir, "own.py"),
		filepath.Join(elsewhere, "x"),
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	given := filepath.Join(elsewhere, "x")
	files := []*proto.FileSpec{
		{Name: "cfg", Uri: given}, {Name: "lib/a", Uri: given}, {Name: "lib/b", Uri: given}, {Name: "file/c", Uri: given},
		{Name: "own.py", Uri: filepath.Join(dir, "own.py")}, {Name: "none", Uri: given}, {Name: "venv", Archive: true},
	}
	prepare := func(path string) []string {
		log := logrus.New()
		log.SetOutput(io.Discard)
		p := NewPreparer(Config{
			Job: "job_1", Checkpoints: []*proto.CheckpointSpec{{Path: path, Uri: dir}}, Files: files, Log: logrus.NewEntry(log),
			OpenStore: func(ctx context.Context, uri string) (store.Store, error) { return store.Open(ctx, uri, nil) },
		})
		first := slices.Concat(p.Prepare(t.Context(), true, false, nil))
		return append(first, slices.Concat(p.Prepare(t.Context(), true, false, nil))...)
	}
	said := prepare("./")
	if len(said) != 1 || !strings.HasPrefix(said[0], dir) || !strings.HasSuffix(said[0], ": cfg, file, lib/a") {
		t.Errorf("it is said: %q", said)
	}
	if said := prepare("./out"); len(said) != 0 {
		t.Errorf("of a directory of its own it is said: %q", said)
	}
}
