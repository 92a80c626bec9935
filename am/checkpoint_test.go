package am_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// The files of an unfinished save are removed before the tasks start, unless they may be
// those of another job that is alive.
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
					heartbeat(t, dir, writer)
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
				t.Errorf("the event log names the other job: %v, want %v: %v", told, shared, final.Events)
			}
		})
	}
}

// heartbeat has another job's writer send heartbeats until the test ends.
func heartbeat(t *testing.T, dir, writer string) {
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

// Once a saver has written the file `checkpoint`, the store remembers that, and the file is
// restored if it is lost.
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
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: []*proto.CommittedFile{{Name: []byte(tfbundle.StateFile), Size: 2}}}}})
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
	final := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
	if b, err := os.ReadFile(state); err != nil || !strings.Contains(string(b), "sharded.ckpt-1200") {
		t.Errorf("it is %q, %v", b, err)
	}
	if !slices.ContainsFunc(final.Events, func(e *proto.JobEvent) bool {
		return strings.Contains(e.Text, "pointed checkpoint at sharded.ckpt-1200")
	}) {
		t.Errorf("the event log does not say so: %v", final.Events)
	}
}

// committed is what an agent reports about a file of two bytes.
func committed(t *testing.T, store, name string, crc uint32) *proto.CommittedFile {
	t.Helper()
	st, err := os.Stat(filepath.Join(store, name))
	if err != nil {
		t.Fatal(err)
	}
	return &proto.CommittedFile{
		Name: []byte(name), Size: 2, Crc32C: crc, HasCrc32C: true, Inode: st.Sys().(*syscall.Stat_t).Ino, ModifiedUnixNs: st.ModTime().UnixNano(),
	}
}

// What agents report as committed becomes a sealed checkpoint, with the checksums that they
// computed.
func TestCheckpointsAreSealed(t *testing.T) {
	j := start(t, nil)
	storeURI := filepath.Join(j.dir, "checkpoints")
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	ps, _ := j.started("ps-0")
	var said []*proto.CommittedFile
	for name, crc := range map[string]uint32{"step-7/ps-0.json": 11, "step-7/COMMITTED": 22} {
		if err := os.MkdirAll(filepath.Join(storeURI, "step-7"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(storeURI, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		said = append(said, committed(t, storeURI, name, crc))
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: said}}})
	s, err := store.NewLocal(storeURI)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sealed := func() *format.Checkpoint {
		list, err := hdfsckpt.List(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			if c.State == format.Sealed {
				return &c
			}
		}
		return nil
	}
	for end := time.Now().Add(time.Minute); sealed() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the checkpoint is not sealed")
		}
	}
	m := sealed().Manifest
	if m.Job != "job_1" || m.Step != 7 {
		t.Errorf("manifest: %+v", m)
	}
	for _, f := range m.Files {
		if want := map[string]uint32{"step-7/ps-0.json": 11, "step-7/COMMITTED": 22}[f.Name]; f.CRC32C != want {
			t.Errorf("%s has the checksum %d, want the agent's, %d", f.Name, f.CRC32C, want)
		}
	}
	w0.exit(0)
	w1.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// A checkpoint that is complete after a quiet time is sealed without a further commit.
func TestSealingByQuiet(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) {
		s.Checkpoints[0].Format, s.Checkpoints[0].QuietSeconds = "plain", 0.2
	})
	storeURI := filepath.Join(j.dir, "checkpoints")
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	j.started("ps-0")
	name := filepath.Join(storeURI, "state-7.npz")
	if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	w0.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: []*proto.CommittedFile{committed(t, storeURI, "state-7.npz", 33)}}}})
	s, err := store.NewLocal(storeURI)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		list, err := hdfsckpt.List(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == 1 && list[0].State == format.Sealed {
			if m := list[0].Manifest; m.Step != 7 || m.Files[0].CRC32C != 33 {
				t.Errorf("manifest: %+v", m)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the checkpoint is not sealed: %+v", list)
		}
	}
	w0.exit(0)
	w1.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestACheckpointFromBeforeTheJobIsKnown: a job that goes on from it says what a loss costs, and
// not that it was completed now.
func TestACheckpointFromBeforeTheJobIsKnown(t *testing.T) {
	written := time.Now().Add(-time.Hour).Truncate(time.Second)
	j := start(t, func(s *proto.JobSpec, _ *cluster) {
		dir := filepath.Join(s.Checkpoints[0].Uri, "step-400")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ps-0.json", "COMMITTED"} {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte("{}"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, written, written); err != nil {
				t.Fatal(err)
			}
		}
	})
	j.eventually("the step of the checkpoint", func() bool {
		s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		return err == nil && s.CompleteStep == 400 && s.CompleteStepAtUnixMs == written.UnixMilli()
	})
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// A task never starts from a store whose file `checkpoint` names an incomplete checkpoint.
func TestTheStoreIsPreparedBeforeARestart(t *testing.T) {
	t.Run("by the first master", func(t *testing.T) { testPrepared(t, false) })
	t.Run("by the next master", func(t *testing.T) { testPrepared(t, true) })
}

func testPrepared(t *testing.T, takenOver bool) {
	attempt := 0
	if takenOver {
		attempt = 1
	}
	j := startAttempt(t, attempt, func(s *proto.JobSpec, _ *cluster) { s.Restarts = 5 })
	store := filepath.Join(j.dir, "checkpoints")
	files, err := filepath.Glob("../hdfsckpt/tfbundle/testdata/sharded.ckpt-1200.*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no checkpoint to try with: %v", err)
	}
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	a, _ := j.started("ps-0")
	if takenOver {
		j.takeOver(2)
		for _, a := range []*agent{a, w0, w1} {
			j.connect(a)
		}
		j.eventually("all agents at the next master", func() bool {
			s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
			return err == nil && !slices.ContainsFunc(s.Tasks, func(t *proto.TaskStatus) bool { return t.AgentPid == 0 })
		})
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []string{"1200", "1300"} {
			if step == "1300" && strings.HasSuffix(f, "data-00002-of-00004") {
				continue // torn
			}
			name := strings.ReplaceAll(filepath.Base(f), "1200", step)
			if err := os.WriteFile(filepath.Join(store, name), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	state := filepath.Join(store, "checkpoint")
	for i, text := range []string{`model_checkpoint_path: "sharded.ckpt-1300"`, "", "rubbish"} {
		os.Remove(state)
		if text != "" {
			if err := os.WriteFile(state, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		ended := a.ended(9)
		ended.Error = []string{"an error", "another", "a third"}[i] // the same each time would end the job
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: ended}})
		a, _ = j.started("ps-0")
		got, err := os.ReadFile(state)
		if err != nil || !strings.Contains(string(got), `"sharded.ckpt-1200"`) {
			t.Errorf("started with %q in place of %q (%v)", got, text, err)
		}
	}
	status, err := j.client.Status(context.Background(), &proto.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(status.Events, func(m *proto.JobEvent) bool {
		return m.Kind == action.KindNote && strings.Contains(m.Text, "sharded.ckpt-1200")
	}) {
		t.Errorf("the event log does not say so: %v", status.Events)
	}
	if !takenOver { // else it would be left to a third one
		j.stop()
		j.end(proto.JobState_JOB_STATE_KILLED)
	}
}
