package checkpoint

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// TestADirectoryThatDoesNotAnswerKeepsNoOtherFromItsEnd: the job's heartbeat is gone from the
// others, so that no job takes it for alive, and they are put right.
func TestADirectoryThatDoesNotAnswerKeepsNoOtherFromItsEnd(t *testing.T) {
	silent, other := t.TempDir(), t.TempDir()
	log, _ := logtest.NewNullLogger()
	answers := true
	p := NewPreparer(Config{
		Job: "job_1", Log: logrus.NewEntry(log),
		Checkpoints: []*proto.CheckpointSpec{{Path: "./silent", Uri: silent}, {Path: "./other", Uri: other}},
		OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
			if uri == silent && !answers {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return store.Open(ctx, uri, nil)
		},
	})
	if notes := slices.Concat(p.Prepare(t.Context(), true, false, nil)); len(notes) > 0 {
		t.Fatal(notes)
	}
	heartbeat := filepath.Join(other, writers.Dir(p.writer()))
	part := filepath.Join(other, "model.ckpt-7_temp", "part-00000-of-00001.index")
	err := os.MkdirAll(filepath.Dir(part), 0o755)
	if err == nil {
		err = os.WriteFile(part, []byte("half"), 0o644)
	}
	if err == nil {
		_, err = os.Stat(heartbeat)
	}
	if err != nil {
		t.Fatal(err)
	}
	answers = false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan []string, 1)
	go func() { ended <- p.Finish(ctx, true) }()
	gone := func(name string) bool { _, err := os.Stat(name); return os.IsNotExist(err) }
	for deadline := time.Now().Add(time.Minute); !gone(heartbeat) || !gone(part); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("heartbeat gone: %v, unfinished save gone: %v", gone(heartbeat), gone(part))
			break
		}
	}
	cancel()
	if notes := <-ended; !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, silent) }) {
		t.Errorf("nothing is said of %s: %q", silent, notes)
	}
}
