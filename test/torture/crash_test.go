package torture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

var (
	histories  = flag.Int("histories", 3, "histories of the local crash test; each is cut at all of its changes")
	everywhere = flag.Bool("everywhere", false, "cut at every place, where otherwise a sample is taken")
	firstSeed  = flag.Uint64("seed", 1, "of the first history")
)

// counts are outcomes, by name.
type counts struct {
	mu sync.Mutex
	of map[string]int
}

func (c *counts) add(outcome string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.of[outcome]++
}

// TestCrashAnywhere runs training programs that save, are ended at a random
// operation, start again from what they find, and save at the restored step,
// over what is there, before they go on. At every single change that mounts,
// sealing and making safe make to the store, what a crash would leave is looked
// at: made safe, then restored as TensorFlow would.
func TestCrashAnywhere(t *testing.T) {
	var outcomes counts
	var cuts atomic.Int64
	for i := range *histories {
		h := &history{t: t, seed: *firstSeed + uint64(i), base: memoryDir(t), outcomes: &outcomes, cuts: &cuts}
		h.run()
		os.RemoveAll(h.base)
		if t.Failed() {
			break
		}
	}
	t.Logf("%d histories were cut at %d places: %v", *histories, cuts.Load(), outcomes.of)
}

// history is one job over some crashes.
type history struct {
	t        *testing.T
	seed     uint64
	rng      *rand.Rand
	base     string
	outcomes *counts
	cuts     *atomic.Int64

	store  string // directory
	watch  watched
	mounts []*mount.FS
	dirs   []string
	child  *child
	p      *program

	style program // chosen at random if it has no shards
	// judged, if it is set, gets each store that was found good, and what is
	// restored from it.
	judged func(dir string, r restored)

	lastID int64
	named  atomic.Int64 // the last save that `checkpoint` has named
	nameds atomic.Int64 // how many it has
	step   int64
	lines  int          // that were appended to the log
	synced atomic.Int64 // of which fsync has said that they are there
	trail  []string     // what was done, for a failure's message
	trails sync.Mutex
}

func (h *history) note(format string, args ...any) {
	h.trails.Lock()
	defer h.trails.Unlock()
	h.trail = append(h.trail, fmt.Sprintf(format, args...))
}

func (h *history) failf(format string, args ...any) {
	h.trails.Lock()
	defer h.trails.Unlock()
	n := max(0, len(h.trail)-60)
	h.t.Errorf("seed %d: %s\nafter:\n  %s", h.seed, fmt.Sprintf(format, args...), strings.Join(h.trail[n:], "\n  "))
}

func (h *history) run() {
	h.rng = rand.New(rand.NewPCG(h.seed, 7))
	h.store = filepath.Join(h.base, "store-0")
	if err := os.Mkdir(h.store, 0o755); err != nil {
		h.t.Fatal(err)
	}
	h.child = startChild(h.t)
	defer h.child.kill()
	style := h.style
	if style.shards == 0 {
		style = program{
			shards: 1 + h.rng.IntN(8), sharded: h.rng.IntN(4) > 0, maxToKeep: []int{0, 1, 1, 2, 5}[h.rng.IntN(5)],
			meta: h.rng.IntN(2) == 0, absolute: h.rng.IntN(2) == 0, width: 1 + h.rng.IntN(40),
			dir: []string{".", ".", ".", "model"}[h.rng.IntN(4)],
		}
	}
	h.note("%+v", style)
	lives := 2 + h.rng.IntN(3)
	for life := range lives {
		p := style
		p.rng = h.rng
		if h.style.shards == 0 && h.rng.IntN(3) == 0 { // started again with another number of parameter servers
			p.shards = 1 + h.rng.IntN(8)
			h.note("-- with %d shards", p.shards)
		}
		p.chief = h.rng.IntN(p.shards)
		h.p = &p
		h.begin()
		h.live(life == lives-1)
		h.crash(life + 1)
		if h.t.Failed() {
			return
		}
	}
}

// begin mounts the store as it is and restores.
func (h *history) begin() {
	ctx := context.Background()
	h.watch = watched{openLocal(h.t, h.store), &sync.Mutex{}, h.cut}
	if err := store.MkdirAll(ctx, h.watch.Local, h.p.dir, 0o755); err != nil {
		h.t.Fatal(err)
	}
	if _, err := hdfsckpt.Repair(ctx, h.watch, 0); err != nil {
		h.failf("making safe: %v", err)
	}
	r, err := restore(ctx, h.watch, h.p.dir)
	if err != nil && !errors.Is(err, errNoState) {
		h.failf("restoring: %v", err)
	}
	h.note("-- starts from save %d, step %d", r.id, r.step)
	h.step = r.step
	h.mounts, h.dirs = nil, nil
	for i := range min(3, h.p.shards) {
		dir := filepath.Join(h.base, fmt.Sprintf("mount-%d-%s", i, filepath.Base(h.store)))
		if err := os.Mkdir(dir, 0o755); err != nil {
			h.t.Fatal(err)
		}
		m, err := mount.New(h.watch, mount.Options{SpoolDir: h.base, FlushEvery: time.Hour})
		if err == nil {
			err = m.Serve(dir)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		h.mounts, h.dirs = append(h.mounts, m), append(h.dirs, dir)
	}
	if r.id != 0 && h.rng.IntN(3) > 0 {
		// CheckpointSaverHook saves at the restored step at once, over what is there.
		h.step -= 10
	}
}

// live saves until a random operation.
func (h *history) live(last bool) {
	ctx := context.Background()
	saves := 1 + h.rng.IntN(4)
	for n := range saves {
		h.step += 10
		h.lastID++
		id := h.lastID
		h.note("save %d at step %d", id, h.step)
		ops := h.p.save(id, h.step)
		until := len(ops)
		if n == saves-1 && !last {
			until = h.rng.IntN(len(ops) + 1)
		}
		for _, o := range ops[:until] {
			h.carryOut(o)
			if h.rng.IntN(8) == 0 {
				h.log(o.task)
			}
			if o.to == path.Join(h.p.dir, tfbundle.StateFile) {
				h.named.Store(id)
				h.nameds.Add(1)
			}
			if h.rng.IntN(len(ops)) == 0 {
				h.seal(ctx)
			}
			if h.t.Failed() {
				return
			}
		}
	}
}

const logFile = "train.log"

// log adds a line to the log that all tasks share, each in its turn.
func (h *history) log(task int) {
	h.lines++
	h.carryOut(op{kind: "append", task: task, name: logFile, data: fmt.Appendf(nil, "line %d\n", h.lines)})
	h.synced.Store(int64(h.lines))
	if h.rng.IntN(3) == 0 {
		h.carryOut(op{kind: "close", task: task, name: logFile})
	}
}

// logIsThere sees that each line is there, in order, of which fsync has said so.
func (h *history) logIsThere(ctx context.Context, s store.Store) {
	synced := h.synced.Load()
	if synced == 0 {
		return
	}
	b, err := store.ReadFile(ctx, s, logFile)
	want := ""
	for i := range synced {
		want += fmt.Sprintf("line %d\n", i+1)
	}
	if err != nil || !strings.HasPrefix(string(b), want) {
		h.failf("after a crash, %d lines of a log were there, and now it reads %q, %v", synced, b, err)
	}
}

func (h *history) carryOut(o op) {
	m := o.task % len(h.dirs)
	r := request{Kind: o.kind, Path: filepath.Join(h.dirs[m], o.name), Data: o.data}
	if o.to != "" {
		r.To = filepath.Join(h.dirs[m], o.to)
	}
	_, err := h.child.try(r)
	h.note("%d: %s %s %s %d bytes: %v", m, o.kind, o.name, o.to, len(o.data), err)
	if err != nil && !o.may {
		h.failf("%s %s %s: %v", o.kind, o.name, o.to, err)
	}
}

// seal is what the application master does when it hears of a commit.
func (h *history) seal(ctx context.Context) {
	list, err := hdfsckpt.List(ctx, h.watch)
	if err != nil {
		h.failf("listing: %v", err)
	}
	for _, c := range list {
		if c.State == format.Complete {
			h.note("sealing %s", c.Name)
			if _, err := hdfsckpt.Seal(ctx, h.watch, c, manifest.Meta{}, nil); err != nil {
				h.failf("sealing %s: %v", c.Name, err)
			}
		}
	}
}

// crash ends all, and goes on with what is in the store at that moment.
func (h *history) crash(life int) {
	next := filepath.Join(h.base, fmt.Sprintf("store-%d", life))
	h.watch.mu.Lock()
	h.cut()
	image(h.t, h.store, next)
	h.watch.before = func() {}
	h.watch.mu.Unlock()
	h.child.kill()
	for _, m := range h.mounts {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := m.Close(ctx); err != nil {
			h.t.Error(err)
		}
		cancel()
	}
	h.watch.Local.Close()
	h.store = next
	h.child = startChild(h.t)
	h.note("-- crash")
}

// cut looks at what a crash now would leave. Cuts happen one at a time.
func (h *history) cut() {
	n := h.cuts.Add(1)
	dir := filepath.Join(h.base, "cut")
	image(h.t, h.store, dir)
	defer os.RemoveAll(dir)
	if n%16 == 0 {
		h.cutSafe(dir)
	}
	s := openLocal(h.t, dir)
	defer s.Close()
	h.judge(s)
}

// cutSafe cuts off making safe itself, at each of its changes.
func (h *history) cutSafe(dir string) {
	for n := 0; ; n++ {
		again := dir + "-safe"
		image(h.t, dir, again)
		ctx, cancel := context.WithCancel(context.Background())
		left := n
		s := watched{openLocal(h.t, again), &sync.Mutex{}, func() {
			if left--; left < 0 {
				cancel() // no operation of a store goes on with it
			}
		}}
		_, err := hdfsckpt.Repair(ctx, s, 0)
		cancel()
		h.cuts.Add(1)
		h.judge(s.Local)
		s.Local.Close()
		os.RemoveAll(again)
		if err == nil || h.t.Failed() {
			return
		}
	}
}

// judge makes a store safe and says whether a program that starts from it is
// where it must be.
func (h *history) judge(s store.Store) {
	ctx := context.Background()
	report, err := hdfsckpt.Repair(ctx, s, 0)
	if err != nil {
		h.failf("making safe after a crash: %v", err)
		return
	}
	h.logIsThere(ctx, s)
	named := h.named.Load()
	r, err := restore(ctx, s, h.p.dir)
	switch {
	case errors.Is(err, errNoState) && named == 0:
		h.outcomes.add("nothing was saved yet")
		return
	case err != nil:
		h.failf("after a crash, save %d is not restored: %v; making safe said: %v", named, err, report)
	case r.id < named:
		h.failf("after a crash, save %d is restored, but %d was complete; making safe said: %v", r.id, named, report)
	case r.id == named:
		h.outcomes.add("the last that was named")
	default:
		h.outcomes.add("a later one, complete but not named yet")
	}
	if h.nameds.Load() > 1 {
		h.olderIsThere(ctx, s, r)
	}
	if h.judged != nil {
		h.judged(s.URI(), r)
	}
}

// olderIsThere sees that a checkpoint older than the newest can be read: besides
// the restored one, which is the older of two where the newest was not named yet.
func (h *history) olderIsThere(ctx context.Context, s store.Store, got restored) {
	list, err := hdfsckpt.List(ctx, s)
	if err != nil {
		h.failf("%v", err)
		return
	}
	retained, err := retain.List(ctx, s)
	if err != nil {
		h.failf("%v", err)
		return
	}
	var found []string
	for _, c := range append(list, retained...) {
		r, err := readBundle(ctx, s, c.Name)
		if err == nil && r.id != got.id {
			return
		}
		found = append(found, fmt.Sprintf("%s: save %d, %v", c.Name, r.id, err))
	}
	h.failf("besides save %d no checkpoint is left: %v", got.id, found)
}
