package am_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// TestUnfinishedSaves: what a save has begun goes before the tasks start, unless
// another job may be at it.
func TestUnfinishedSaves(t *testing.T) {
	for name, shared := range map[string]bool{"of nobody": false, "of another job": true} {
		t.Run(name, func(t *testing.T) {
			const other = "job_2"
			writer := proto.WriterName(other, "container_1")
			var part string
			j := start(t, func(s *proto.JobSpec, _ *cluster) {
				dir := s.Checkpoints[0].Uri
				part = filepath.Join(dir, "model.ckpt-7_temp", "part-00000-of-00001.index")
				dirs := []string{filepath.Dir(part)}
				if shared {
					dirs = append(dirs, filepath.Join(dir, writers.Dir(writer)))
				}
				for _, d := range dirs {
					if err := os.MkdirAll(d, 0o755); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.WriteFile(part, []byte("half"), 0o644); err != nil {
					t.Fatal(err)
				}
				if shared {
					live(t, dir, writer)
				}
			})
			w0, _ := j.started("worker-0")
			w1, _ := j.started("worker-1")
			w0.exit(0)
			w1.exit(0)
			final := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
			if _, err := os.Stat(part); (err == nil) != shared {
				t.Errorf("after the job, %s: %v", part, err)
			}
			told := slices.ContainsFunc(final.Events, func(m *proto.JobEvent) bool { return strings.Contains(m.Text, other) })
			if told != shared {
				t.Errorf("the job's story names the other job: %v, want %v: %v", told, shared, final.Events)
			}
		})
	}
}

// live has another job's writer send heartbeats until the test ends.
func live(t *testing.T, dir, writer string) {
	s, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.Tick(100 * time.Millisecond); ctx.Err() == nil; <-tick {
			_ = writers.Heartbeat(ctx, s, writer) // it ends with the test
		}
	})
	t.Cleanup(func() {
		stop()
		wg.Wait()
		s.Close()
	})
}

// TestASaverIsRemembered: when a saver has written the file `checkpoint`, the store
// says so, so that it is put right should it be lost.
func TestASaverIsRemembered(t *testing.T) {
	j := start(t, nil)
	storeURI := filepath.Join(j.dir, "checkpoints")
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	ps, _ := j.started("ps-0")
	fixtures, err := filepath.Glob("../hdfsckpt/tfbundle/testdata/sharded.ckpt-1200.[di]*")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	for _, f := range fixtures {
		b, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(storeURI, filepath.Base(f)), b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(storeURI, tfbundle.StateFile)
	if err := os.WriteFile(state, tfbundle.CheckpointState{Current: "sharded.ckpt-1200"}.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: []*proto.CommittedFile{{Name: tfbundle.StateFile, Size: 2}}}}})
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if list, _ := os.ReadDir(filepath.Join(storeURI, store.OwnDir, "savers")); len(list) == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatal("the saver is not remembered")
		}
	}
	if err := os.Remove(state); err != nil { // and at the job's end it is put right
		t.Fatal(err)
	}
	w0.exit(0)
	w1.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
	if b, err := os.ReadFile(state); err != nil || !strings.Contains(string(b), "sharded.ckpt-1200") {
		t.Errorf("it is %q, %v", b, err)
	}
}
