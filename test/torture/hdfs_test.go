package torture

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/internal/hadoop/conf"
	"holdfast/test/testcluster"
)

var (
	kills    = flag.Int("kills", 1, "files written and read while DataNodes die, for each replication")
	killSize = flag.Int64("kill-size", 96, "their length, in MB")
)

// TestHDFS breaks a real HDFS of three DataNodes.
func TestHDFS(t *testing.T) {
	cluster := testcluster.ForTest(t, testcluster.Options{HDFSOnly: true})
	h := &hadoop{t: t, Cluster: cluster}
	t.Run("agent killed", h.agentKilled)
	t.Run("zombie", func(t *testing.T) { zombies(t, h.open, 0, 20, h.each(30)) })
	server := strings.TrimPrefix(h.HDFS(), "hdfs://")
	t.Run("zombie cut off", func(t *testing.T) { cutOff(t, h.opened, server, notSent) })
	t.Run("zombie cut off, with its change on the way", func(t *testing.T) { cutOff(t, h.opened, server, onTheWay) })
	t.Run("zombie cut off and killed, with its change on the way", func(t *testing.T) { cutOff(t, h.opened, server, onTheWayOfTheKilled) })
	t.Run("zombie stopped", func(t *testing.T) { cutOff(t, h.opened, "", notSent) })
	t.Run("DataNode killed", h.dataNodeKilled)
	t.Run("NameNode killed", h.nameNodeKilled)
	for _, replication := range []int{2, 3} {
		t.Run(fmt.Sprintf("DataNodes die, replication %d", replication), func(t *testing.T) { h.dataNodesDie(t, replication) })
	}
}

type hadoop struct {
	*testcluster.Cluster
	t      *testing.T
	stores int
}

// each is the distance between the places that are cut.
func (h *hadoop) each(n int) int {
	if *everywhere {
		return 1
	}
	return n
}

func (h *hadoop) conf(t *testing.T) *conf.Conf {
	t.Helper()
	c, err := conf.Load(h.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// open makes a new store.
func (h *hadoop) open(name string) (string, store.Store, []string) {
	h.stores++
	uri := fmt.Sprintf("%s/torture/%s%d", h.HDFS(), name, h.stores)
	s, err := store.Open(context.Background(), uri, h.conf(h.t))
	if err != nil {
		h.t.Fatal(err)
	}
	return uri, s, []string{conf.EnvDir + "=" + h.ConfDir()}
}

// opened is open for tests that run at once.
func (h *hadoop) opened(t *testing.T) (string, store.Store, []string) {
	uri := fmt.Sprintf("%s/torture/%s", h.HDFS(), strings.ReplaceAll(t.Name(), "/", "-"))
	s, err := store.Open(t.Context(), uri, h.conf(t))
	if err != nil {
		t.Fatal(err)
	}
	return uri, s, []string{conf.EnvDir + "=" + h.ConfDir()}
}

// cutting is a save, cut off at one operation, after a first one that was
// sealed: of the next step, the first then being removed, or over the first.
type cutting struct {
	s     store.Store
	uri   string
	env   []string
	agent *agent
	ops   []op
	p     *program
	step  int64 // of the save that is cut
}

func (h *hadoop) cutting(t *testing.T, over bool) *cutting {
	t.Helper()
	c := &cutting{step: 20, p: &program{rng: rand.New(rand.NewPCG(5, 5)), shards: 2, sharded: true, maxToKeep: 1, width: 2000, dir: "."}}
	if over {
		c.step = 10
	}
	c.uri, c.s, c.env = h.open("cut-")
	c.agent = startAgent(t, c.uri, "agent", 0, c.env...)
	for _, o := range c.p.save(1, 10) {
		c.agent.carryOut(t, o)
	}
	ctx := context.Background()
	list, err := hdfsckpt.List(ctx, c.s)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d checkpoints, %v", len(list), err)
	}
	if _, err := hdfsckpt.Seal(ctx, c.s, list[0], manifest.Meta{}, nil); err != nil {
		t.Fatal(err)
	}
	c.ops = c.p.save(2, c.step)
	return c
}

// judge makes the store safe and restores. Whether the new save was named tells
// which must be restored at least.
func (c *cutting) judge(t *testing.T, outcomes *counts, cut int, named bool) {
	t.Helper()
	ctx := context.Background()
	c.agent.kill()
	report, err := hdfsckpt.Repair(ctx, c.s, 0)
	if err != nil {
		t.Fatalf("cut at %d: making safe: %v", cut, err)
	}
	r, err := restore(ctx, c.s, ".")
	switch {
	case err != nil:
		t.Errorf("cut at %d: %v; making safe said: %v", cut, err, report)
	case named && r.id != 2:
		t.Errorf("cut at %d: save %d is restored though 2 was complete; making safe said: %v", cut, r.id, report)
	default:
		outcomes.add(fmt.Sprintf("save %d", r.id))
	}
	c.s.Close()
}

// until carries out the operations before cut, and reports whether the save was named.
func (c *cutting) until(t *testing.T, cut int) (named bool) {
	t.Helper()
	for _, o := range c.ops[:min(cut, len(c.ops))] {
		c.agent.carryOut(t, o)
		named = named || o.to == tfbundle.StateFile
	}
	return named
}

// total is how many operations a save has.
func (h *hadoop) total(t *testing.T) int {
	c := h.cutting(t, false)
	defer c.s.Close()
	c.agent.kill()
	return len(c.ops)
}

// agentKilled ends an agent by kill -9 after some operation, and in the next.
func (h *hadoop) agentKilled(t *testing.T) {
	var outcomes counts
	cuts := 0
	for _, over := range []bool{false, true} {
		for cut, total := h.first(t, 12), h.total(t); cut <= total; cut += h.each(12) {
			c := h.cutting(t, over)
			named := c.until(t, cut)
			if cut < len(c.ops) { // begun, and cut off in the middle
				if err := c.agent.program.enc.Encode(c.agent.ask(c.ops[cut])); err != nil {
					t.Fatal(err)
				}
			}
			c.judge(t, &outcomes, cut, named)
			cuts++
		}
	}
	t.Logf("%d agents were killed; restored: %v", cuts, outcomes.of)
}

// first is a place to begin with, another at each run.
func (h *hadoop) first(t *testing.T, n int) int {
	if *everywhere {
		return 0
	}
	at := rand.IntN(n)
	t.Logf("the first cut is at %d", at)
	return at
}

// dataNodeKilled loses a DataNode before some operation: the save goes on as if
// nothing had happened.
func (h *hadoop) dataNodeKilled(t *testing.T) {
	var outcomes counts
	cuts := 0
	for cut, total := h.first(t, 20), h.total(t); cut <= total; cut += h.each(20) {
		c := h.cutting(t, cut%2 == 0)
		c.until(t, cut)
		dn := h.Daemon(fmt.Sprintf("dn%d", rand.IntN(3)))
		must(t, dn.Kill())
		for _, o := range c.ops[min(cut, len(c.ops)):] {
			c.agent.carryOut(t, o)
		}
		c.judge(t, &outcomes, cut, true)
		must(t, dn.Restart(t.Context()))
		cuts++
	}
	t.Logf("%d DataNodes were killed in saves; restored: %v", cuts, outcomes.of)
}

// nameNodeKilled cuts off the NameNode before some operation. Either the agent
// is ended while it waits for it, or the save goes on once it is back.
func (h *hadoop) nameNodeKilled(t *testing.T) {
	var outcomes counts
	cuts := 0
	for _, die := range []bool{true, false} {
		for cut, total := h.first(t, 30), h.total(t); cut < total; cut += h.each(40) {
			c := h.cutting(t, cut%2 == 0)
			if cut >= len(c.ops) { // one over another has fewer
				c.agent.kill()
				break
			}
			named := c.until(t, cut)
			must(t, h.Daemon("nn").Kill())
			answered := make(chan error, 1)
			o := c.ops[cut]
			go func() {
				_, err := c.agent.program.try(c.agent.ask(o))
				answered <- err
			}()
			if die {
				c.agent.server.kill()
				<-answered
			}
			must(t, h.Daemon("nn").Restart(t.Context()))
			if !die {
				if err := <-answered; err != nil && !o.may {
					t.Errorf("%s %s %s, begun without a NameNode: %v", o.kind, o.name, o.to, err)
				}
				for _, o := range c.ops[cut+1:] {
					c.agent.carryOut(t, o)
				}
				named = true
			}
			c.judge(t, &outcomes, cut, named)
			cuts++
		}
	}
	t.Logf("the NameNode was killed in %d saves; restored: %v", cuts, outcomes.of)
}

// dataNodesDie writes files while a DataNode is killed at a random moment and
// restarted later, and reads them while another is.
func (h *hadoop) dataNodesDie(t *testing.T, replication int) {
	c := h.conf(t)
	c.Set("dfs.replication", fmt.Sprint(replication))
	s, err := store.Open(t.Context(), fmt.Sprintf("%s/torture/replicated-%d", h.HDFS(), replication), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	defer func() { // for who comes next
		for i := range 3 {
			if dn := h.Daemon(fmt.Sprintf("dn%d", i)); !dn.Running() {
				must(t, dn.Restart(context.WithoutCancel(t.Context())))
			}
		}
	}()
	size := *killSize << 20
	const chunk = 1 << 20
	var wrote, read time.Duration
	for n := range *kills {
		seed := uint64(1000*replication + n)
		rng := rand.New(rand.NewPCG(seed, 9))
		// breaking kills a DataNode at one place and restarts it at a later one.
		breaking := func() func(at int64) {
			dn := h.Daemon(fmt.Sprintf("dn%d", rng.IntN(3)))
			die := rng.Int64N(size)
			back := die + rng.Int64N(size)/2
			return func(at int64) {
				if at >= die && dn.Running() && die >= 0 {
					must(t, dn.Kill())
					die = -1
				}
				if at >= back && die < 0 && !dn.Running() || at >= size && !dn.Running() {
					must(t, dn.Restart(t.Context()))
				}
			}
		}
		data := rand.NewChaCha8([32]byte{byte(n), byte(replication)})
		begin := time.Now()
		w, err := s.Create(t.Context(), "file", 0o644)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, chunk)
		var sum uint32
		step := breaking()
		for at := int64(0); at < size; at += chunk {
			step(at)
			data.Read(b)
			sum = crc32.Update(sum, castagnoli, b)
			if _, err := w.Write(b); err != nil {
				t.Fatalf("file %d: writing at %d: %v", n, at, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatalf("file %d: closing: %v", n, err)
		}
		wrote += time.Since(begin)
		step(size)
		begin = time.Now()
		r, err := s.Open(t.Context(), "file")
		if err != nil {
			t.Fatal(err)
		}
		step = breaking()
		var got uint32
		for at := int64(0); at < size; at += chunk {
			step(at)
			if k, err := r.ReadAt(b, at); k != chunk {
				t.Fatalf("file %d: reading at %d: %d bytes, %v", n, at, k, err)
			}
			got = crc32.Update(got, castagnoli, b)
		}
		step(size)
		read += time.Since(begin)
		r.Close()
		if got != sum {
			t.Errorf("file %d: its checksum is %08x, %08x was written", n, got, sum)
		}
	}
	t.Logf("%d files of %d MB, each written and read while a DataNode died and came back, all intact: %.0f s and %.0f s",
		*kills, *killSize, wrote.Seconds(), read.Seconds())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}
