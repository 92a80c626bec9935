package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/conf"
)

func init() {
	more["serve"] = func(r request) (reply, error) { return reply{}, serve(r.Path, r.To, string(r.Data), r.Size) }
}

// serve mounts a store on a directory, under a writer's name and with a lease in
// milliseconds that is not renewed.
func serve(storeURI, dir, writer string, lease int64) error {
	var c *conf.Conf
	if where := os.Getenv(conf.EnvDir); where != "" {
		var err error
		if c, err = conf.Load(where); err != nil {
			return err
		}
	}
	s, err := store.Open(context.Background(), storeURI, c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return err
	}
	o := mount.Options{SpoolDir: filepath.Dir(dir), FlushEvery: 50 * time.Millisecond, Writer: writer}
	if lease > 0 {
		end := bootTime() + lease*int64(time.Millisecond)
		o.Lease = func() error {
			if bootTime() > end {
				return errors.New("its lease is over")
			}
			return nil
		}
	}
	m, err := mount.New(s, o)
	if err != nil {
		return err
	}
	return m.Serve(dir)
}

func bootTime() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return t.Nano()
}

// agent is a server in a process of its own, and a program that uses its mount.
type agent struct {
	server, program *child
	dir             string
}

func startAgent(t testing.TB, store, writer string, lease time.Duration, env ...string) *agent {
	t.Helper()
	a := &agent{server: startChild(t, env...), program: startChild(t), dir: filepath.Join(memoryDir(t), "mount")}
	if err := os.Mkdir(a.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a.server.do(request{Kind: "serve", Path: store, To: a.dir, Data: []byte(writer), Size: lease.Milliseconds()})
	t.Cleanup(a.kill)
	return a
}

// kill is kill -9 of both.
func (a *agent) kill() {
	a.server.kill()
	unix.Unmount(a.dir, unix.MNT_DETACH)
	a.program.kill()
}

// ask turns an op into a request to the agent's program.
func (a *agent) ask(o op) request {
	r := request{Kind: o.kind, Path: filepath.Join(a.dir, o.name), Data: o.data}
	if o.to != "" {
		r.To = filepath.Join(a.dir, o.to)
	}
	return r
}

func (a *agent) carryOut(t testing.TB, o op) {
	t.Helper()
	if _, err := a.program.try(a.ask(o)); err != nil && !o.may {
		t.Fatalf("%s %s %s: %v", o.kind, o.name, o.to, err)
	}
}

// TestZombie stops an agent at each operation of a save, has its replacement
// restore and save at the same step meanwhile, and lets the zombie go on to the
// end of what it can. With a lease, nothing that it does has any effect. Nor has what
// it does where only Fence keeps it out, since its clock may be wrong: it can neither
// make a file visible nor remove one, not even of a checkpoint that would be retained, and
// what its replacement has saved is restored whole.
func TestZombie(t *testing.T) {
	dir := memoryDir(t)
	for _, lease := range []bool{true, false} {
		t.Run("lease "+strconv.FormatBool(lease), func(t *testing.T) {
			open := func(name string) (string, store.Store, []string) {
				store := filepath.Join(dir, name+strconv.FormatBool(lease))
				if err := os.Mkdir(store, 0o755); err != nil {
					t.Fatal(err)
				}
				return store, openLocal(t, store), nil
			}
			each := 1
			if lease && !*everywhere {
				each = 6 // each waits for the end of a lease
			}
			length := time.Duration(0)
			if lease {
				length = 400 * time.Millisecond
			}
			zombies(t, open, length, 20, each)
			if !lease {
				zombies(t, open, length, removedStep, each)
			}
		})
	}
}

// opener makes a new store: its URI, the store, and the environment for servers.
type opener func(name string) (string, store.Store, []string)

// longestLease bounds the length of a lease for a machine that is slow.
const longestLease = 30 * time.Second

// removedStep is that of the checkpoint that a zombie without a lease goes on to remove.
const removedStep = 10

// zombies tries every each-th operation; replacements save at that step. A length of 0
// is no lease; another is doubled where the machine is too slow for it: an agent must be
// stopped before its lease ends.
func zombies(t *testing.T, open opener, length time.Duration, step int64, each int) {
	lease := length > 0
	const shards = 2
	keep := 2
	if !lease {
		keep = 1 // so that each save but the first removes the one before
	}
	zombie := func(rng *rand.Rand) *program {
		return &program{rng: rng, shards: shards, sharded: true, maxToKeep: keep, width: 20, dir: ".", meta: true}
	}
	p := zombie(rand.New(rand.NewPCG(1, 1)))
	p.saved = []int64{removedStep}
	total := len(p.save(2, 20))
	var refused, passed int
	for cut := 0; cut <= total; cut += each {
		uri, s, env := open(fmt.Sprintf("store-%d-%v-%d-", cut, length, step))
		p, q := zombie(rand.New(rand.NewPCG(1, 1))), zombie(rand.New(rand.NewPCG(2, uint64(cut))))
		begin := time.Now()
		first := startAgent(t, uri, "zombie", length, env...)
		if !lease {
			for _, o := range p.save(3, removedStep) {
				first.carryOut(t, o)
			}
			q.saved = []int64{removedStep}
		}
		ops := p.save(1, 20)
		if lease {
			// What needs no file of its own to be completed.
			for _, o := range p.file(0, "older", []byte("model_checkpoint_path: \"model.ckpt-10\"\n")) {
				first.carryOut(t, o)
			}
			ops = append(ops, op{kind: "append", name: logFile, data: []byte("the zombie's line\n")},
				op{kind: "rename", name: "older", to: "checkpoint"}, op{kind: "append", name: logFile, data: []byte("another\n")},
				op{kind: "remove", name: "model.ckpt-20.index"}, op{kind: "mkdir", name: "model.ckpt-30_temp"})
		}
		const victim = "not a checkpoint's"
		for _, o := range p.file(0, victim, []byte("content")) {
			first.carryOut(t, o)
		}
		ops = append(ops, op{kind: "remove", name: victim, may: true})
		for _, o := range ops[:min(cut, len(ops))] {
			first.carryOut(t, o)
		}
		if lease && time.Since(begin) > length/2 && length < longestLease {
			t.Logf("that took too long for a lease of %v; it is tried again with twice that", length)
			first.kill()
			length *= 2
			cut -= each
			continue
		}
		pid := first.server.cmd.Process.Pid
		freeze(t, pid)
		// What the zombie's program was about to do waits for it.
		stuck := make(chan error, 1)
		go func() {
			var err error
			if cut < len(ops) {
				_, err = first.program.try(first.ask(ops[cut]))
			}
			stuck <- err
		}()
		if lease {
			waitUntil(begin.Add(length + length/2))
		}
		ctx := context.Background()
		if err := writers.Fence(ctx, s, "zombie"); err != nil {
			t.Fatal(err)
		}
		if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil {
			t.Fatal(err)
		}
		if step < 20 { // begun anew before what the zombie goes on to remove
			remove(t, s, "model.ckpt-20.")
			q.saved = nil
		}
		second := startAgent(t, uri, "replacement", 0, env...)
		for _, o := range q.save(2, step) {
			second.carryOut(t, o)
		}
		before := visible(t, s)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		errs := []error{<-stuck}
		for _, o := range ops[min(cut+1, len(ops)):] {
			_, err := first.program.try(first.ask(o))
			errs = append(errs, err)
		}
		for _, err := range errs {
			if err != nil {
				refused++
			} else {
				passed++
			}
		}
		if after := visible(t, s); after != before {
			t.Errorf("stopped at operation %d, the zombie changed the store:\n%s\nbefore:\n%s", cut, after, before)
		}
		r, err := restore(ctx, s, ".")
		if lease && (err != nil || r.id != 2) {
			t.Errorf("stopped at operation %d: save %d is restored, %v", cut, r.id, err)
		}
		if _, err := s.Stat(ctx, victim); err != nil && cut < len(ops) {
			t.Errorf("stopped at operation %d, the zombie has removed a file: %v", cut, err)
		}
		if content := contents(t, s); !lease {
			for name, id := range content {
				if id == 1 {
					t.Errorf("stopped at operation %d, the zombie made %s visible", cut, name)
				}
			}
		}
		first.kill()
		second.kill()
		if !lease {
			// The replacement is lost, too: what it has saved is what the next one starts from,
			// whatever the zombie has moved to the retained checkpoints meanwhile.
			if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil {
				t.Fatal(err)
			}
			if r, err := restore(ctx, s, "."); err != nil || r.id != 2 {
				t.Errorf("stopped at operation %d: after another loss save %d is restored, %v:\n%s", cut, r.id, err, visible(t, s))
			}
		}
		s.Close()
	}
	t.Logf("%d places; of the zombie's operations %d were refused and %d had no effect or were reads", total/each+1, refused, passed)
}

// remove removes files by what their names begin with.
func remove(t *testing.T, s store.Store, prefix string) {
	t.Helper()
	entries, err := s.List(context.Background(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && strings.HasPrefix(e.Name, prefix) {
			if err := s.Remove(context.Background(), e.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func waitUntil(at time.Time) { <-time.After(time.Until(at)) }

// visible is a list of what programs see, with lengths and times.
func visible(t testing.TB, s store.Store) string {
	t.Helper()
	entries, err := s.List(context.Background(), ".")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, e := range entries {
		if e.Name != store.OwnDir {
			text += fmt.Sprintf("%s %d %d %d\n", e.Name, e.Size, e.ModTime.UnixNano(), e.Inode)
		}
	}
	return text
}

// contents says of which save the data files are that programs see.
func contents(t testing.TB, s store.Store) map[string]int64 {
	t.Helper()
	ctx := context.Background()
	list, err := hdfsckpt.List(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, c := range list {
		if r, err := readBundle(ctx, s, c.Name); err == nil {
			found[c.Name] = r.id
		}
	}
	return found
}
