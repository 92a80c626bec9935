package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// TestPlainCrashAnywhere is the crash test of programs with files of their own:
// directories step-N that a file COMMITTED completes, of which all but the
// newest are removed, and one file that is saved over and over (torch.save).
func TestPlainCrashAnywhere(t *testing.T) {
	total := 0
	var outcomes counts
	for seed := range uint64(6) {
		p := &plain{t: t, base: memoryDir(t), rng: rand.New(rand.NewPCG(seed, 11)), outcomes: &outcomes}
		p.run()
		total += p.cuts
		if t.Failed() {
			break
		}
	}
	t.Logf("cut at %d places: %v", total, outcomes.of)
}

type plain struct {
	t        *testing.T
	base     string
	rng      *rand.Rand
	outcomes *counts
	cuts     int

	store     string
	committed atomic.Int64 // the last directory that was completed
	closed    atomic.Int64 // the last content of the one file
}

const modelFile = "model.pt"

// content says of which save it is, and whether it is whole.
func content(id int64, size int) []byte {
	line := fmt.Sprintf("save %d;", id)
	return append(bytes.Repeat([]byte(line), size), '.')
}

func idOf(b []byte) (int64, error) {
	first, _, ok := bytes.Cut(b, []byte(";"))
	id, err := strconv.ParseInt(string(bytes.TrimPrefix(first, []byte("save "))), 10, 64)
	if !ok || err != nil || b[len(b)-1] != '.' {
		return 0, fmt.Errorf("not whole: %.20q... of %d bytes", b, len(b))
	}
	return id, nil
}

func (p *plain) run() {
	p.store = filepath.Join(p.base, "store")
	dir := filepath.Join(p.base, "mount")
	for _, d := range []string{p.store, dir} {
		if err := os.Mkdir(d, 0o755); err != nil {
			p.t.Fatal(err)
		}
	}
	s := watched{openLocal(p.t, p.store), &sync.Mutex{}, p.cut}
	defer s.Local.Close()
	m, err := mount.New(s, mount.Options{SpoolDir: p.base, FlushEvery: time.Hour})
	if err == nil {
		err = m.Serve(dir)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	a := &agent{program: startChild(p.t), dir: dir}
	defer func() {
		a.program.kill()
		if err := m.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	}()
	shards := 1 + p.rng.IntN(4)
	g := &program{rng: p.rng}
	for id := int64(1); id <= 5 && !p.t.Failed(); id++ {
		at := fmt.Sprintf("step-%d", id)
		a.carryOut(p.t, op{kind: "mkdir", name: at})
		var files [][]op
		for i := range shards {
			files = append(files, g.file(0, path.Join(at, fmt.Sprintf("shard-%d", i)), content(id, 50)))
		}
		for _, o := range interleave(p.rng, files) {
			a.carryOut(p.t, o)
		}
		for _, o := range g.file(0, path.Join(at, formats.Committed), fmt.Appendf(nil, `{"shards": %d}`, shards)) {
			a.carryOut(p.t, o)
		}
		p.committed.Store(id)
		if id > 1 { // shutil.rmtree, in no order
			old := fmt.Sprintf("step-%d", id-1)
			names := []string{formats.Committed}
			for i := range shards {
				names = append(names, fmt.Sprintf("shard-%d", i))
			}
			p.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for _, n := range names {
				a.carryOut(p.t, op{kind: "remove", name: path.Join(old, n)})
			}
			a.carryOut(p.t, op{kind: "rmdir", name: old})
		}
		name := modelFile
		if id%2 == 0 {
			name += ".tmp"
		}
		for _, o := range g.file(0, name, content(id, 400)) {
			a.carryOut(p.t, o)
		}
		if name != modelFile {
			a.carryOut(p.t, op{kind: "rename", name: name, to: modelFile})
		}
		p.closed.Store(id)
	}
}

func (p *plain) cut() {
	p.cuts++
	ctx, dir := context.Background(), filepath.Join(p.base, "cut")
	image(p.t, p.store, dir)
	defer os.RemoveAll(dir)
	s := openLocal(p.t, dir)
	defer s.Close()
	if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil {
		p.t.Errorf("making safe: %v", err)
	}
	b, err := store.ReadFile(ctx, s, modelFile)
	if closed := p.closed.Load(); closed > 0 || !errors.Is(err, fs.ErrNotExist) {
		id := int64(0)
		if err == nil {
			id, err = idOf(b)
		}
		if err != nil || id < closed {
			p.t.Errorf("%s is of save %d, %v; %d was closed", modelFile, id, err, closed)
		}
	}
	list, err := hdfsckpt.List(ctx, s)
	if err != nil {
		p.t.Error(err)
		return
	}
	committed := p.committed.Load()
	newest := format.NewestComplete(list)
	if newest == nil {
		if committed > 0 {
			p.t.Errorf("no checkpoint is left of %d", committed)
		}
		p.outcomes.add("nothing was saved yet")
		return
	}
	id := p.whole(s, newest)
	if id < committed {
		p.t.Errorf("the newest is %d, %d was complete", id, committed)
	}
	p.outcomes.add("the newest, or a later one")
	retained, err := retain.List(ctx, s)
	if err != nil {
		p.t.Error(err)
	}
	for _, c := range append(list, retained...) {
		if c.Whole() && p.whole(s, &c) < id {
			return
		}
	}
	if committed > 1 {
		p.t.Errorf("nothing older than %d is left", id)
	}
}

// whole reads a checkpoint's shards, which must be of one save.
func (p *plain) whole(s store.Store, c *format.Checkpoint) int64 {
	id := int64(-1)
	for _, f := range c.Files {
		if path.Base(f.Name) == formats.Committed {
			continue
		}
		b, err := store.ReadFile(context.Background(), s, f.Name)
		var of int64
		if err == nil {
			of, err = idOf(b)
		}
		if err != nil || id >= 0 && of != id {
			p.t.Errorf("%s: of save %d, others of %d: %v", f.Name, of, id, err)
		}
		id = of
	}
	return id
}
