package checkpoint

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// noStatus takes in what a sealer reports.
type noStatus struct {
	mu    sync.Mutex
	steps []int64 // that are complete now, as they were told
	found []int64 // that were complete before
}

func (n *noStatus) SetCompleteStep(step int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.steps = append(n.steps, step)
}
func (n *noStatus) FoundComplete(step int64, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.found = append(n.found, step)
}

func (*noStatus) Saved(time.Duration) {}

func (*noStatus) SetTotalSteps(int64, time.Time) {}
func (*noStatus) LastRecovery() string           { return "" }

// sealing is a sealer that runs over a local store.
type sealing struct {
	*Sealer
	t     *testing.T
	store store.Store
	path  string
	dir   string
	opens atomic.Int32 // how often the sealer opened the store
	told  noStatus
	log   *logtest.Hook

	unreadable atomic.Pointer[string] // a file that the sealer may not read
}

// choosy is a store of which one file may not be read.
type choosy struct {
	*store.Local
	unreadable *atomic.Pointer[string]
}

func (c choosy) Open(ctx context.Context, name string) (store.Reader, error) {
	if not := c.unreadable.Load(); not != nil && name == *not {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES}
	}
	return c.Local.Open(ctx, name)
}

func startSealer(t *testing.T, quiet time.Duration) *sealing {
	return startSealerIn(t, t.TempDir(), quiet)
}

func startSealerIn(t *testing.T, dir string, quiet time.Duration) *sealing {
	local, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	log, logged := logtest.NewNullLogger()
	spec := &proto.CheckpointSpec{Path: "./out", Uri: dir}
	s := &sealing{t: t, store: local, path: spec.Path, dir: dir, log: logged}
	s.Sealer = NewSealer(Config{
		Job: "job_1", Checkpoints: []*proto.CheckpointSpec{spec}, Log: logrus.NewEntry(log),
		OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
			s.opens.Add(1)
			opened, err := store.Open(ctx, uri, nil)
			if err != nil {
				return nil, err
			}
			return choosy{opened.(*store.Local), &s.unreadable}, nil
		},
	}, &s.told)
	s.quiet = quiet
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx, nil)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		local.Close()
	})
	return s
}

// begin begins a file as an agent's mount does; what it returns puts it in its place.
func (s *sealing) begin(name string, content []byte) (commit func()) {
	s.t.Helper()
	ctx := s.t.Context()
	dir := writers.Dir(proto.WriterName("job_1", "container_1"))
	err := store.MkdirAll(ctx, s.store, dir, 0o755)
	if err != nil {
		s.t.Fatal(err)
	}
	w, err := s.store.Create(ctx, dir+"/part", 0o644)
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return func() {
		s.t.Helper()
		err := w.Close()
		if err == nil {
			err = store.MkdirAll(ctx, s.store, filepath.Dir(name), 0o755)
		}
		if err == nil {
			err = s.store.Rename(ctx, dir+"/part", name)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		s.report(name, 0)
	}
}

// report reports a file that became visible a time ago.
func (s *sealing) report(name string, age time.Duration) {
	s.Committed(&proto.Committed{Path: s.path, Files: []*proto.CommittedFile{{Name: []byte(name), AgeMs: age.Milliseconds()}}}, 0)
}

// untilSealed waits until a checkpoint is sealed, and so was looked at.
func (s *sealing) untilSealed(name string) {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		list, err := hdfsckpt.List(s.t.Context(), s.store)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, c := range list {
			if c.Name == name && c.State == format.Sealed {
				return
			}
		}
	}
	s.t.Fatalf("%s is not sealed", name)
}

func (s *sealing) untilTold() (n Newest) {
	s.t.Helper()
	select {
	case n = <-s.Newest():
	case <-time.After(time.Minute):
		s.t.Fatal("core is told of no checkpoint whose save has ended")
	}
	return n
}

func (s *sealing) notTold(when string) {
	s.t.Helper()
	select {
	case <-s.Newest():
		s.t.Errorf("%s: core is told that the save has ended", when)
	default:
	}
}

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../hdfsckpt", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestASaveHasEnded: of a save of which nothing tells which file is its last, tasks that
// wait to be stopped are not stopped between its files.
func TestASaveHasEnded(t *testing.T) {
	const quiet = 500 * time.Millisecond
	for name, files := range map[string][]string{
		"files side by side": {"model-10.pt", "optimizer-10.pt"},
		"in a directory":     {"step_10/model.pt", "step_10/optimizer.pt"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSealer(t, quiet)
			whole := fixture(t, "torchfile/testdata/alone.pt")
			s.begin(files[0], whole)()
			second := s.begin(files[1], whole)
			s.untilSealed(files[0])
			s.notTold("while another file is being written")
			end := time.Now()
			second()
			if filepath.Dir(files[0]) != "." { // two files of which nothing tells more
				return
			}
			s.untilTold()
			if took := time.Since(end); took < quiet {
				t.Errorf("core is told after %v", took)
			}
		})
	}
	t.Run("nothing more comes", func(t *testing.T) {
		s := startSealer(t, quiet)
		s.begin("model-10.pt", fixture(t, "torchfile/testdata/alone.pt"))()
		s.untilTold()
	})
	t.Run("the next save is there", func(t *testing.T) {
		s := startSealer(t, time.Hour)
		whole := fixture(t, "torchfile/testdata/alone.pt")
		s.begin("model-10.pt", whole)()
		s.untilSealed("model-10.pt")
		s.notTold("when nothing says that it has ended")
		s.begin("model-20.pt", whole)()
		s.untilTold()
	})
	t.Run("the next save is being written", func(t *testing.T) {
		s := startSealer(t, time.Hour)
		whole := fixture(t, "torchfile/testdata/alone.pt")
		s.begin("model-10.pt", whole)()
		s.untilSealed("model-10.pt")
		s.begin("model-20.pt", whole)()
		commit := s.begin("optimizer-20.pt", whole)
		s.untilSealed("model-20.pt")
		s.notTold("in the middle of a save")
		commit()
	})
	t.Run("a marker says so", func(t *testing.T) {
		s := startSealer(t, time.Hour)
		for _, name := range []string{"step-10/a", "step-10/COMMITTED"} {
			s.begin(name, []byte("{}"))()
		}
		s.untilTold()
	})
}

// TestWhatCannotBeReadKeepsNothingElseFromBeingSealed: as files of another user in the same
// directory.
func TestWhatCannotBeReadKeepsNothingElseFromBeingSealed(t *testing.T) {
	s := startSealer(t, time.Hour)
	others := "step-10/a"
	s.unreadable.Store(&others)
	for _, name := range []string{"step-10/a", "step-10/COMMITTED", "step-20/a", "step-20/COMMITTED"} {
		s.begin(name, []byte("{}"))()
	}
	s.untilSealed("step-20")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		said := slices.ContainsFunc(s.log.AllEntries(), func(e *logrus.Entry) bool {
			err, _ := e.Data[logrus.ErrorKey].(error)
			return err != nil && strings.Contains(err.Error(), "step-10")
		})
		if said {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing says that step-10 is not sealed")
		}
	}
}

// TestACheckpointOfAFixedNumberOfRanks: as those are which DeepSpeed writes, whatever program
// has it write them and where, and not others.
func TestACheckpointOfAFixedNumberOfRanks(t *testing.T) {
	whole := fixture(t, "torchfile/testdata/alone.pt")
	const model, optimizer = "mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"
	of := func(dir string, last ...string) []string {
		return append([]string{dir + "/" + model, dir + "/" + optimizer}, last...)
	}
	for name, x := range map[string]struct {
		files []string
		rule  format.Rule
		fixed bool
	}{
		"torch.save":            {files: []string{"model-10.pt"}},
		"Trainer's":             {files: []string{"checkpoint-10/model.safetensors", "checkpoint-10/rng_state_0.pth", "checkpoint-10/trainer_state.json"}},
		"DeepSpeed's":           {files: of("global_step10", "latest"), fixed: true},
		"Trainer's, DeepSpeed":  {files: of("checkpoint-10/global_step10", "checkpoint-10/model.safetensors", "checkpoint-10/trainer_state.json"), fixed: true},
		"Lightning's":           {files: of("epoch=1-step=10.ckpt/checkpoint", "epoch=1-step=10.ckpt/latest"), fixed: true},
		"Accelerate's":          {files: of("checkpoint_10/pytorch_model", "checkpoint_10/done"), rule: format.Rule{Format: "plain", Marker: "done"}, fixed: true},
		"Accelerate's, local":   {files: []string{"checkpoint_10/pytorch_model_fsdp_rank0.bin", "checkpoint_10/done"}, rule: format.Rule{Format: "plain", Marker: "done"}, fixed: true},
		"Accelerate's, by FSDP": {files: []string{"checkpoint_10/pytorch_model_fsdp_0.bin", "checkpoint_10/done"}, rule: format.Rule{Format: "plain", Marker: "done"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSealer(t, 100*time.Millisecond)
			if err := format.SetRule(t.Context(), s.store, x.rule); err != nil {
				t.Fatal(err)
			}
			for _, f := range x.files {
				content := whole
				switch filepath.Base(f) {
				case "latest":
					content = []byte("global_step10")
				case "trainer_state.json":
					content = []byte("{}")
				case "model.safetensors":
					content = fixture(t, "safetensors/testdata/few.safetensors")
				}
				s.begin(f, content)()
			}
			select {
			case newest := <-s.Newest():
				if newest.FixedWorld != x.fixed {
					t.Errorf("that as many ranks are needed is %v, want %v", newest.FixedWorld, x.fixed)
				}
			case <-time.After(time.Minute):
				t.Fatal("it is not found complete")
			}
		})
	}
}

// TestACompleteCheckpointIsToldOnce: however often a directory is looked at, so that its age is
// that since it was complete.
func TestACompleteCheckpointIsToldOnce(t *testing.T) {
	s := startSealer(t, 0)
	for _, name := range []string{"model-10.pt", "optimizer-10.pt", "model-20.pt", "optimizer-20.pt"} {
		s.begin(name, fixture(t, "torchfile/testdata/alone.pt"))()
		s.untilSealed(name) // each is looked at by itself
	}
	s.told.mu.Lock()
	defer s.told.mu.Unlock()
	if want := []int64{10, 20}; !slices.Equal(s.told.steps, want) {
		t.Errorf("the status was told of the steps %v, want %v", s.told.steps, want)
	}
}

// TestWhatWasCompleteBeforeIsNoNews: a master finds what its predecessor has sealed, or another
// job has left, and is told again by agents of what they have committed before it began. Core
// knows how many ranks that needs, and the status when it was complete; but nothing is saved now.
func TestWhatWasCompleteBeforeIsNoNews(t *testing.T) {
	whole := fixture(t, "torchfile/testdata/alone.pt")
	told := func(s *sealing, steps, found []int64) {
		t.Helper()
		s.told.mu.Lock()
		defer s.told.mu.Unlock()
		if !slices.Equal(s.told.steps, steps) || !slices.Equal(s.told.found, found) {
			t.Errorf("the status was told that %v are complete now, and %v were; want %v and %v", s.told.steps, s.told.found, steps, found)
		}
	}
	for name, first := range map[string]func(*sealing){
		"a takeover":               func(s *sealing) { s.ScanAll() },
		"an agent says it again":   func(s *sealing) { s.report("model-10.pt", time.Hour) },
		"a file of another is new": func(s *sealing) { s.begin("best.pt", whole[:10])() },
	} {
		t.Run(name, func(t *testing.T) {
			before := startSealer(t, 100*time.Millisecond)
			before.begin("model-10.pt", whole)()
			if n := before.untilTold(); !n.Saved {
				t.Error("a checkpoint was not saved when it was")
			}
			s := startSealerIn(t, before.dir, 100*time.Millisecond)
			first(s)
			if n := s.untilTold(); n.Saved {
				t.Error("core is told that it is saved now")
			}
			told(s, nil, []int64{10})
			for _, name := range []string{"model-20.pt", "model-30.pt"} {
				s.begin(name, whole)()
				if n := s.untilTold(); !n.Saved {
					t.Errorf("%s was not saved when it was", name)
				}
			}
			told(s, []int64{20, 30}, []int64{10})
			// Its program removes it, and writes what is no checkpoint.
			if err := s.store.Remove(t.Context(), "model-30.pt"); err != nil {
				t.Fatal(err)
			}
			s.begin("other.pt", whole[:10])()
			if n := s.untilTold(); n.Saved {
				t.Error("with the newest removed, the one before is said to be saved now")
			}
			told(s, []int64{20, 30}, []int64{10, 20})
		})
	}
}

// A store that is open knows the manifests that it has read; one that is opened for
// each checkpoint would read all of them again, and log in again.
func TestOneStoreForAllSeals(t *testing.T) {
	s := startSealer(t, 0)
	for _, name := range []string{"model-10.pt", "model-20.pt", "model-30.pt"} {
		s.begin(name, fixture(t, "torchfile/testdata/alone.pt"))()
		s.untilSealed(name)
	}
	if n := s.opens.Load(); n != 1 {
		t.Errorf("three checkpoints took %d stores", n)
	}
}

// TestAManifestThatIsNotReadIsToldOnce: a checkpoint whose manifest is too large to be read is
// sealed anew, once, and the log has the file and the bound.
func TestAManifestThatIsNotReadIsToldOnce(t *testing.T) {
	s := startSealer(t, 0)
	const size = store.ReadLimit + 1
	spoil := func() {
		t.Helper()
		name := filepath.Join(s.store.URI(), manifest.Path("model-10.pt"))
		whole := filepath.Join(t.TempDir(), "manifest") // which nobody reads before it is
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(whole, nil, 0o644)
		}
		if err == nil {
			err = os.Truncate(whole, size) // no room is taken
		}
		if err == nil {
			err = os.Rename(whole, name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	spoil()
	s.begin("model-10.pt", fixture(t, "torchfile/testdata/alone.pt"))()
	s.untilSealed("model-10.pt")
	spoil()
	s.begin("model-20.pt", fixture(t, "torchfile/testdata/alone.pt"))()
	s.untilSealed("model-20.pt")
	s.begin("model-30.pt", fixture(t, "torchfile/testdata/alone.pt"))()
	s.untilSealed("model-30.pt")
	list, err := hdfsckpt.List(t.Context(), s.store)
	if err != nil || len(list) != 3 || list[0].State != format.Complete {
		t.Errorf("sealed anew has not helped, and listed are %+v, %v", list, err)
	}
	var told []string
	for _, e := range s.log.AllEntries() {
		if e.Level <= logrus.WarnLevel {
			told = append(told, e.Message)
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], manifest.Path("model-10.pt")) || !strings.Contains(told[0], strconv.Itoa(size)) || !strings.Contains(told[0], strconv.Itoa(store.ReadLimit)) {
		t.Errorf("the log has %q", told)
	}
}
