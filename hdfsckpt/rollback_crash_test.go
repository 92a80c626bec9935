package hdfsckpt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
)

var errDied = errors.New("died")

// mortal is a store that changes n times, and then no longer: as far as it knows, its process
// was killed. With late, the last change is made, and nobody learns of it.
type mortal struct {
	*store.Local
	n    int
	late bool
}

func (m *mortal) change(f func() error) error {
	m.n--
	switch {
	case m.n > 0:
		return f()
	case m.n == 0 && m.late:
		if err := f(); err != nil {
			return err
		}
	}
	return errDied
}

func (m *mortal) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	return m.change(func() error { return m.Local.Mkdir(ctx, name, perm) })
}

func (m *mortal) Rename(ctx context.Context, from, to string) error {
	return m.change(func() error { return m.Local.Rename(ctx, from, to) })
}

func (m *mortal) RenameNew(ctx context.Context, from, to string) error {
	return m.change(func() error { return m.Local.RenameNew(ctx, from, to) })
}

func (m *mortal) Remove(ctx context.Context, name string) error {
	return m.change(func() error { return m.Local.Remove(ctx, name) })
}

func (m *mortal) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	return m.change(func() error { return m.Local.Chtimes(ctx, name, atime, mtime) })
}

func (m *mortal) Create(ctx context.Context, name string, perm fs.FileMode) (store.Writer, error) {
	w, err := m.Local.Create(ctx, name, perm)
	return mortalWriter{w, m}, err
}

type mortalWriter struct {
	store.Writer
	m *mortal
}

func (w mortalWriter) Close() error {
	err := w.m.change(w.Writer.Close)
	if err != nil {
		_ = w.Abort()
	}
	return err
}

// Dead processes answer nothing.
func (m *mortal) Stat(ctx context.Context, name string) (store.Info, error) {
	if m.n <= 0 {
		return store.Info{}, errDied
	}
	return m.Local.Stat(ctx, name)
}

// putRayList puts a list of Ray's with checkpoints mine_STEP.
func putRayList(t *testing.T, s store.Store, dir string, steps ...int) {
	t.Helper()
	var results []map[string]any
	for _, step := range steps {
		results = append(results, map[string]any{"version": 0, "checkpoint_dir_name": fmt.Sprintf("mine_%d", step), "metrics": map[string]any{"step": step, "loss": 0.5}})
	}
	text, err := json.Marshal(map[string]any{"ray_version": "2.60.0", "checkpoint_results": results, "latest_checkpoint_result": results[len(results)-1]})
	must(t, err)
	put(t, s, path.Join(dir, "checkpoint_manager_snapshot.json"), text)
}

// rayListed returns the steps in a list; the last is the one that the list says is the latest.
func rayListed(t *testing.T, s store.Store, dir string) []int {
	t.Helper()
	text, err := store.ReadFile(context.Background(), s, path.Join(dir, "checkpoint_manager_snapshot.json"))
	if store.Vanished(err) {
		return nil
	}
	must(t, err)
	type result struct {
		Version int    `json:"version"`
		Name    string `json:"checkpoint_dir_name"`
		Metrics struct {
			Step int     `json:"step"`
			Loss float64 `json:"loss"`
		} `json:"metrics"`
	}
	var all struct {
		Ray     string   `json:"ray_version"`
		Results []result `json:"checkpoint_results"`
		Latest  result   `json:"latest_checkpoint_result"`
	}
	must(t, json.Unmarshal(text, &all))
	var steps []int
	for _, r := range all.Results {
		steps = append(steps, r.Metrics.Step)
	}
	if last := all.Results[len(all.Results)-1]; last != all.Latest || all.Ray != "2.60.0" || last.Metrics.Loss != 0.5 {
		t.Errorf("the list is %s", text)
	}
	return steps
}

// crashing are stores with checkpoints of the steps 10 to 40, in the ways that a rollback moves
// them.
var crashing = map[string]func(t *testing.T, s store.Store){
	"files, and what is called the last": func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30, 40} {
			putTorch(t, s, fmt.Sprintf("run/step=%d.ckpt", step), step < 40)
		}
		putTorch(t, s, "run/best.ckpt", true)
		putTorch(t, s, "run/last.ckpt", true)
	},
	"several files each": func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30} {
			rolledBackSeries["safetensors, cut"].put(t, s, step, true)
			rolledBackSeries["mxnet"].put(t, s, step, true)
		}
		rolledBackSeries["safetensors, cut"].put(t, s, 40, false)
	},
	"directories": func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30, 40} {
			rolledBackSeries["Trainer's"].put(t, s, step, step < 40)
		}
	},
	"saved over": func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30, 40} {
			putTorch(t, s, fmt.Sprintf("step-%d.pt", step), true)
		}
		publish(t, s, "step-30.pt", torchFixture(t, "train-40.pt"))
		publish(t, s, "step-40.pt", torchFixture(t, "train-40.pt"))
	},
	"with a list": func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30} {
			rolledBackSeries["ray"].put(t, s, step, true)
		}
		rolledBackSeries["ray"].put(t, s, 40, false)
	},
}

// TestRollbackIsBrokenOff: at some of the changes that a rollback makes it dies. Nothing is lost,
// what was gone back to can be restored, and the next rollback ends as one that was not broken
// off; so forward again.
func TestRollbackIsBrokenOff(t *testing.T) { breakOff(t, 4) }

// TestLongRollbackIsBrokenOffAnywhere: at each change.
func TestLongRollbackIsBrokenOffAnywhere(t *testing.T) { breakOff(t, 1) }

// breakOff breaks rollbacks off at each so many changes.
func breakOff(t *testing.T, every int) {
	for name, build := range crashing {
		t.Run(name, func(t *testing.T) {
			for i, late := range []bool{false, true} {
				undisturbed := brokenOff(t, build, 0, 0, late)
				first := 1 + i*every/2 // together they are as many changes apart as possible
				for n := first; ; n += every {
					after := brokenOff(t, build, n, 0, late)
					compareOutcomes(t, fmt.Sprintf("broken off at change %d (late: %v)", n, late), after, undisturbed)
					if !after.died {
						break
					}
				}
				for n := first; ; n += every {
					after := brokenOff(t, build, 0, n, late)
					compareOutcomes(t, fmt.Sprintf("broken off forward at change %d (late: %v)", n, late), after, undisturbed)
					if !after.died {
						t.Logf("died at %d places", (n-first)/every)
						break
					}
				}
			}
		})
	}
}

type outcome struct {
	died          bool
	back, forward string
}

func compareOutcomes(t *testing.T, what string, got, want outcome) {
	t.Helper()
	for _, x := range [][3]string{{"rolled back", got.back, want.back}, {"forward again", got.forward, want.forward}} {
		if x[1] != x[2] {
			t.Fatalf("%s, %s there are\n%s\nwant\n%s", what, x[0], x[1], x[2])
		}
	}
}

// brokenOff rolls a store back to step 20, and forward to 30, and dies at a change of either (0: at
// none). It is then done again.
func brokenOff(t *testing.T, build func(*testing.T, store.Store), dieBack, dieForward int, late bool) (o outcome) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "holdfast-rollback-") // where nothing waits for a disk
	if err != nil {
		dir, err = os.MkdirTemp("", "holdfast-rollback-")
	}
	must(t, err)
	defer os.RemoveAll(dir)
	local, err := store.NewLocal(dir)
	must(t, err)
	defer local.Close()
	build(t, local)
	age(t, local, "10", "20", "30", "40", "best", "last")
	for _, c := range list(t, local) {
		if c.Whole() {
			seal(t, local, c.Name)
		}
	}
	had := times(t, local, ".")
	do := func(step int64, die int) string {
		plan := planRollback(t, local, "", step)
		if die > 0 {
			m := &mortal{local, die, late}
			err := plan.Execute(context.Background(), m, "alice")
			o.died = m.n <= 0
			if o.died == (err == nil) && !late {
				t.Fatalf("died: %v, and the rollback says %v", o.died, err)
			}
			have := times(t, local, ".")
			for at, name := range had {
				if have[at] == "" {
					t.Fatalf("dead at change %d (late: %v) of going to %d, %s is lost; there are %v", die, late, step, name, have)
				}
			}
			whole := 0
			for _, c := range list(t, local) {
				if c.Whole() && c.Step == 20 {
					whole++
				}
			}
			if whole == 0 {
				t.Fatalf("dead at change %d of going to %d, there is none of step 20: %s", die, step, states(list(t, local)))
			}
			plan = planRollback(t, local, "", step)
		}
		if plan.Needed() {
			if err := plan.Execute(context.Background(), local, "alice"); err != nil {
				t.Fatalf("after death at change %d (late: %v), going to %d: %v", die, late, step, err)
			}
		}
		return outcomeOf(t, local)
	}
	o.back = do(20, dieBack)
	o.forward = do(30, dieForward)
	have := times(t, local, ".")
	for at, name := range had {
		if have[at] == "" {
			t.Fatalf("at the end %s is lost", name)
		}
	}
	return o
}

// outcomeOf is what is visible, and what is aside.
func outcomeOf(t *testing.T, s store.Store) string {
	t.Helper()
	var lines []string
	for _, c := range list(t, s) {
		lines = append(lines, fmt.Sprintf("%s %s", c.Name, c.State))
	}
	for _, f := range allFiles(t, s, ".") {
		if !strings.HasPrefix(f, store.OwnDir) {
			lines = append(lines, f)
		}
	}
	for _, a := range movedAside(t, s) {
		lines = append(lines, fmt.Sprintf("aside %s %s", a.Name, a.Rollback.State))
	}
	for _, c := range listRetained(t, s) {
		lines = append(lines, "retained "+c.Former)
	}
	for _, f := range allFiles(t, s, store.OwnDir) {
		if rest, ok := strings.CutPrefix(f, store.OwnDir+"/rollback"); ok {
			lines = append(lines, "left "+rest)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// times are the files of checkpoints, by their times.
func times(t *testing.T, s store.Store, dir string) map[int64]string {
	t.Helper()
	found := map[int64]string{}
	for _, name := range allFiles(t, s, dir) {
		if strings.HasSuffix(name, ".json") && (strings.HasPrefix(name, store.OwnDir) && !strings.Contains(name, "/files/") || strings.Contains(name, "snapshot.json")) {
			continue
		}
		i, err := s.Stat(context.Background(), name)
		must(t, err)
		found[i.ModTime.UnixNano()] = name
	}
	return found
}

// TestRollbackIsBrokenOffOnHDFS: so it is where changes are calls of a server. It is cut at a sample
// of them.
func TestRollbackIsBrokenOffOnHDFS(t *testing.T) { breakOffOnHDFS(t, 29) }

// TestLongRollbackIsBrokenOffOnHDFS: at more of them.
func TestLongRollbackIsBrokenOffOnHDFS(t *testing.T) { breakOffOnHDFS(t, 5) }

// breakOffOnHDFS breaks rollbacks off at each so many calls.
func breakOffOnHDFS(t *testing.T, every int) {
	for _, name := range []string{"files, and what is called the last", "several files each"} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			want := ""
			for n := 0; ; n += every {
				s := openHDFS(t)
				crashing[name](t, s)
				age(t, s, "10", "20", "30", "40", "best", "last")
				had := times(t, s, ".")
				calls, died := 0, false
				dies := store.Guarded(ctx, func() error {
					if calls++; n > 0 && calls > n {
						died = true
						return errDied
					}
					return nil
				})
				plan := planRollback(t, s, "", 20)
				err := plan.Execute(dies, s, "alice")
				if n == 0 {
					must(t, err)
					want = outcomeOf(t, s)
					t.Logf("%d calls", calls)
					s.Close()
					continue
				}
				have := times(t, s, ".")
				for at, name := range had {
					if have[at] == "" {
						t.Fatalf("dead after %d calls, %s is lost", n, name)
					}
				}
				plan = planRollback(t, s, "", 20)
				must(t, plan.Execute(ctx, s, "alice"))
				if got := outcomeOf(t, s); got != want {
					t.Fatalf("broken off after %d calls, there are\n%s\nwant\n%s", n, got, want)
				}
				s.Close()
				if !died {
					break
				}
			}
		})
	}
}

// TestTheLastIsMovedWhenItsCopyIsMade: also where it is of the step that is gone back to. Without
// it a program that goes on from what is called the last would begin anew.
func TestTheLastIsMovedWhenItsCopyIsMade(t *testing.T) {
	for n := 1; ; n++ {
		local := openLocal(t, t.TempDir()).(*store.Local)
		put(t, local, "run/step=10.ckpt", ofLightning(t, 10))
		put(t, local, "run/last.ckpt", ofLightning(t, 10))
		later := old.Add(time.Minute)
		must(t, local.Chtimes(t.Context(), "run/last.ckpt", later, later))
		plan := planRollback(t, local, "", 10)
		if len(plan.Moves) != 1 || plan.Moves[0].Step != 10 || len(plan.Copies) != 1 {
			t.Fatalf("moved are %+v, copies %v", plan.Moves, plan.Copies)
		}
		err := plan.Execute(t.Context(), &mortal{Local: local, n: n}, "alice")
		var there [2]bool
		for i, name := range []string{"run/last.ckpt", store.OwnDir + "/rollback/last.ckpt"} {
			exists, err := store.Exists(t.Context(), local, name)
			must(t, err)
			there[i] = exists
		}
		if there == [2]bool{} {
			t.Errorf("broken off at change %d (%v), neither last.ckpt nor its copy is there", n, err)
		}
		local.Close()
		if err == nil {
			return
		}
	}
}
