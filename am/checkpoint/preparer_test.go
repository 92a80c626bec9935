package checkpoint

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// failing is a store that does not answer once something has been moved aside in it.
type failing struct {
	*store.Local
	after *int // how many lists fail then
	moved *bool
}

func (s failing) Rename(ctx context.Context, from, to string) error {
	err := s.Local.Rename(ctx, from, to)
	*s.moved = *s.moved || err == nil && strings.HasPrefix(to, ".holdfast/aside/")
	return err
}

func (s failing) List(ctx context.Context, dir string) ([]store.Info, error) {
	if *s.moved && *s.after > 0 {
		*s.after--
		return nil, errors.New("the store does not answer")
	}
	return s.Local.List(ctx, dir)
}

// TestWhatWasDoneIsToldWhateverCameAfterIt: what was moved aside is in the notes, whether the
// rest of the preparation fails for good or only at first.
func TestWhatWasDoneIsToldWhateverCameAfterIt(t *testing.T) {
	for name, failures := range map[string]int{"at first": 1, "for good": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				part := filepath.Join(dir, "model.ckpt-5_temp", "part-00000-of-00001.index")
				if err := os.Mkdir(filepath.Dir(part), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(part, []byte("x"), 0o644); err != nil {
					t.Fatal(err)
				}
				long := time.Now().Add(-time.Hour) // of this test's clock
				for _, name := range []string{part, filepath.Dir(part)} {
					if err := os.Chtimes(name, long, long); err != nil {
						t.Fatal(err)
					}
				}
				log := logrus.New()
				log.SetOutput(io.Discard)
				moved, after := false, failures
				p := NewPreparer(Config{
					Job: "job_1", Checkpoints: []*proto.CheckpointSpec{{Path: ".", Uri: dir}}, Log: logrus.NewEntry(log),
					Files: []*proto.FileSpec{{Name: "train.py", Uri: filepath.Join(dir, "x")}}, // so that the directory is listed once more
					OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
						s, err := store.NewLocal(uri)
						return failing{s, &after, &moved}, err
					},
				})
				notes := strings.Join(slices.Concat(p.Prepare(t.Context(), true, false, nil)), "\n")
				if !moved {
					t.Fatal("nothing was moved aside")
				}
				if !strings.Contains(notes, "model.ckpt-5_temp") {
					t.Errorf("what was moved aside is not told: %q", notes)
				}
				if failed := strings.Contains(notes, "could not be made safe to start from"); failed != (failures > 1) {
					t.Errorf("the notes are %q", notes)
				}
				if n := strings.Count(notes, "model.ckpt-5_temp aside"); n > 1 {
					t.Errorf("it is told %d times: %q", n, notes)
				}
			})
		})
	}
}
