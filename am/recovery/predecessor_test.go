package recovery_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/am/recovery"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestATakeoverDoesNotWaitForACheckpointDirectory: where there is no journal, checkpoint
// directories are asked which generation saved last; one that does not answer holds up
// neither the others nor the master.
func TestATakeoverDoesNotWaitForACheckpointDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		dead := make(chan struct{})
		defer close(dead)
		cfg := recovery.Config{
			Job: "job_1", Attempt: 2, Dir: dir,
			Checkpoints: []*proto.CheckpointSpec{{Uri: "hdfs://hangs/a"}, {Uri: "file:///mnt/dead"}},
			OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
				if uri == "file:///mnt/dead" {
					<-dead
					return nil, context.Canceled
				}
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}
		began := time.Now()
		p, err := recovery.FindPredecessor(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the master waited %v", d)
		}
		notes := strings.Join(p.Notes, "\n")
		for _, c := range cfg.Checkpoints {
			if !strings.Contains(notes, c.Uri) {
				t.Errorf("the event log says nothing of %s: %q", c.Uri, notes)
			}
		}
	})
}

// TestWhatDirectoriesSayIsTakenIn: what the others have said by the end of the time in which one does
// not answer counts.
func TestWhatDirectoriesSayIsTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		cfg := recovery.Config{
			Job: "job_1", Attempt: 2, Dir: dir, Checkpoints: []*proto.CheckpointSpec{{Uri: "hdfs://hangs/a"}},
			OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
				if uri == "hdfs://hangs/a" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return store.NewLocal(uri)
			},
		}
		for range 20 {
			cfg.Checkpoints = append(cfg.Checkpoints, &proto.CheckpointSpec{Uri: t.TempDir()})
		}
		p, err := recovery.FindPredecessor(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(p.Notes, "\n")
		if n := strings.Count(notes, "which generation has saved last"); n != 1 {
			t.Errorf("%d directories are said not to have answered, want one: %q", n, notes)
		}
		if !strings.Contains(notes, "it did not answer within 5s") {
			t.Errorf("the event log does not say why: %q", notes)
		}
	})
}
