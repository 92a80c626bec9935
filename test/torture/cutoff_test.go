package torture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/hadoop/conf"
)

// leaseEnd is when the lease of this process's mount ends, in its boot time; 0: it has
// not begun.
var leaseEnd atomic.Int64

func init() {
	more["serve leased"] = func(r request) (reply, error) {
		var c *conf.Conf
		if where := os.Getenv(conf.EnvDir); where != "" {
			var err error
			if c, err = conf.Load(where); err != nil {
				return reply{}, err
			}
		}
		s, err := store.Open(context.Background(), r.Path, c)
		if err != nil {
			return reply{}, err
		}
		m, err := mount.New(s, mount.Options{SpoolDir: filepath.Dir(r.To), FlushEvery: 50 * time.Millisecond, Writer: string(r.Data), Lease: func() error {
			if end := leaseEnd.Load(); end > 0 && bootTime() > end {
				return errors.New("its lease is over")
			}
			return nil
		}})
		if err != nil {
			return reply{}, err
		}
		fence = m.Fence
		return reply{}, m.Serve(r.To)
	}
	// As an agent that does not hear from its master: no more than that long, and then
	// it fences its mount.
	more["lease"] = func(r request) (reply, error) {
		leaseEnd.Store(bootTime() + r.Size)
		time.AfterFunc(time.Duration(r.Size), func() { fence(errors.New("its lease is over")) })
		return reply{}, nil
	}
}

var fence func(error)

// link passes connections to a server on. While it is cut, what clients send is lost,
// unless they live to send it again.
type link struct {
	address string
	mu      sync.Mutex
	whole   *sync.Cond
	cut     bool
	at      string         // a method: the link is cut when a call of it comes
	held    chan struct{}  // closed then
	passing sync.WaitGroup // what clients send
}

func newLink(t *testing.T, server string) *link {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	k := &link{address: l.Addr().String()}
	k.whole = sync.NewCond(&k.mu)
	t.Cleanup(func() { k.set(false) })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			k.passing.Add(1)
			go k.pass(up, client)
			go func() {
				io.Copy(client, up)
				client.Close()
			}()
		}
	}()
	return k
}

// pass reads nothing while the link is cut: what a client has sent lies in a buffer of
// the kernel, and is dropped when the client has reset the connection.
func (k *link) pass(up, client net.Conn) {
	defer k.passing.Done()
	defer up.Close()
	buf := make([]byte, 64<<10)
	raw, err := client.(*net.TCPConn).SyscallConn()
	if err != nil {
		return
	}
	for {
		// Waits until there is something, and reads it only if the link is whole then.
		var n int
		var readErr error
		err := raw.Read(func(fd uintptr) bool {
			there, _, e := syscall.Recvfrom(int(fd), buf, syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			if e == syscall.EAGAIN {
				return false
			}
			k.mu.Lock()
			if k.at != "" && there > 0 && bytes.Contains(buf[:there], []byte(k.at)) {
				k.at, k.cut = "", true
				close(k.held)
			}
			for k.cut {
				k.whole.Wait()
			}
			k.mu.Unlock()
			if e, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR); e != 0 || err != nil {
				n = 0 // Linux would still give what came before the reset
				return true
			}
			n, readErr = syscall.Read(int(fd), buf)
			return true
		})
		if err != nil || readErr != nil || n <= 0 {
			return
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (k *link) set(cut bool) {
	k.mu.Lock()
	k.cut = cut
	k.mu.Unlock()
	k.whole.Broadcast()
}

// cutAt has the link be cut when a call of a method comes, which is held with all after it.
func (k *link) cutAt(method string) (held <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.at, k.held = method, make(chan struct{})
	return k.held
}

// changes are the NameNode's calls by which operations change what is visible.
var changes = map[string]string{"rename": "rename2", "close": "complete", "remove": "rename2", "mkdir": "mkdirs"}

const (
	zombieLease = 600 * time.Millisecond
	zombieLine  = "the zombie's first line\n"
	secondLine  = "the zombie's second line\n"
	newLine     = "the replacement's line\n"
)

// freeze stops a process, and returns when all its threads have stopped: until then it may
// go on to answer.
func freeze(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	for !stopped(pid) {
		time.Sleep(time.Millisecond)
	}
}

// stopped reports whether all threads of a process are.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, name := range threads {
		if b, err := os.ReadFile(name); err == nil && !strings.Contains(string(b), ") T ") {
			return false
		}
	}
	return true
}

// TestZombieAppendsAndRenames is cutOff on a local store.
func TestZombieAppendsAndRenames(t *testing.T) {
	dir := memoryDir(t)
	var stores atomic.Int64
	cutOff(t, func(t *testing.T) (string, store.Store, []string) {
		store := filepath.Join(dir, strconv.FormatInt(stores.Add(1), 10))
		if err := os.Mkdir(store, 0o755); err != nil {
			t.Fatal(err)
		}
		return store, openLocal(t, store), nil
	}, "", notSent)
}

// where a change is when its agent is cut off.
type where int

const (
	notSent where = iota
	onTheWay
	onTheWayOfTheKilled // its agent is killed once it is cut off
)

// cutOff cuts an agent off from its master and its store, or stops it, while an append
// or a rename of its program is under way, until its lease has ended and its replacement
// has saved under the same names and added to the same log. Nothing of what the zombie
// then does is seen; and what the log was told to hold is in it. server is that of the
// store, for agents that are cut off from it; "": agents are stopped. at is when: before the
// change, or once it is on the way, sent within the lease.
func cutOff(t *testing.T, open func(t *testing.T) (uri string, s store.Store, env []string), server string, at where) {
	for _, under := range []op{
		{kind: "append", name: logFile, data: []byte(secondLine)},
		{kind: "rename", name: "older", to: "checkpoint"},
		{kind: "rename", name: "part", to: "model.ckpt-20.index"},
		{kind: "close", name: "open"},
		{kind: "remove", name: "older"},
		{kind: "mkdir", name: "made"},
	} {
		lease, method := zombieLease, ""
		if at != notSent {
			lease = 2 * time.Second // it has to be sent within it
			if method = changes[under.kind]; method == "" {
				continue
			}
		}
		t.Run(strings.TrimSpace(under.kind+" "+under.to), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			uri, s, env := open(t)
			defer s.Close()
			var stop, thaw func()
			a := &agent{server: startChild(t, env...), program: startChild(t), dir: filepath.Join(memoryDir(t), "mount")}
			if err := os.Mkdir(a.dir, 0o755); err != nil {
				t.Fatal(err)
			}
			from := uri
			var k *link
			if server != "" {
				k = newLink(t, server)
				from = strings.Replace(uri, server, k.address, 1)
				stop, thaw = func() { k.set(true) }, func() { k.set(false) }
			} else {
				pid := a.server.cmd.Process.Pid
				stop = func() { freeze(t, pid) }
				thaw = func() { must(t, syscall.Kill(pid, syscall.SIGCONT)) }
			}
			a.server.do(request{Kind: "serve leased", Path: from, To: a.dir, Data: []byte("zombie")})
			t.Cleanup(a.kill)
			p := &program{rng: rand.New(rand.NewPCG(1, 1)), shards: 2, sharded: true, maxToKeep: 2, width: 20, dir: "."}
			for _, name := range []string{"older", "part"} {
				for _, o := range p.file(0, name, []byte("model_checkpoint_path: \"model.ckpt-10\"\n")) {
					a.carryOut(t, o)
				}
			}
			a.carryOut(t, op{kind: "append", name: logFile, data: []byte(zombieLine)})
			a.carryOut(t, op{kind: "create", name: "open"})
			a.carryOut(t, op{kind: "write", name: "open", data: []byte("content")})

			a.server.do(request{Kind: "lease", Size: int64(lease)})
			end := time.Now().Add(lease)
			held := (<-chan struct{})(nil)
			if at != notSent {
				held = k.cutAt(method)
			} else {
				stop()
			}
			type answer struct {
				err error
				at  time.Time
			}
			stuck := make(chan answer, 1)
			go func() {
				_, err := a.program.try(a.ask(under))
				stuck <- answer{err, time.Now()}
			}()
			if at != notSent {
				select {
				case <-held:
					if at == onTheWayOfTheKilled {
						a.server.kill()
					}
				case <-time.After(time.Until(end)): // on a busy machine it was not sent within the lease
					stop()
				}
			}
			waitUntil(end.Add(lease / 2)) // as the master does
			replaced := time.Now()
			must(t, writers.Fence(ctx, s, "zombie"))
			if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil {
				t.Fatal(err)
			}
			second := startAgent(t, uri, "replacement", 0, env...)
			q := &program{rng: rand.New(rand.NewPCG(2, 2)), shards: 2, sharded: true, maxToKeep: 2, width: 20, dir: "."}
			for _, o := range append(q.save(2, 20), op{kind: "append", name: logFile, data: []byte(newLine)}, op{kind: "close", name: logFile}) {
				second.carryOut(t, o)
			}
			seen := func() string {
				t.Helper()
				text, err := store.ReadFile(ctx, s, logFile)
				if err != nil {
					t.Fatal(err)
				}
				return fmt.Sprintf("%s%s:\n%s", visible(t, s), logFile, text)
			}
			before := seen()
			thaw()
			got := <-stuck
			for _, o := range []op{
				{kind: "append", name: logFile, data: []byte("too late\n")}, {kind: "rename", name: "part", to: "model.ckpt-20.index"},
				{kind: "rename", name: "older", to: "checkpoint"}, {kind: "remove", name: "model.ckpt-20.index"},
			} {
				if _, err := a.program.try(a.ask(o)); err == nil {
					t.Errorf("the zombie was told that its %s %s is done", o.kind, o.to)
				}
			}
			a.kill()
			after := seen()
			if k != nil {
				k.passing.Wait() // all that it has sent and was not dropped has been passed on
				for until := time.Now().Add(time.Second); after == before && time.Now().Before(until); after = seen() {
					time.Sleep(50 * time.Millisecond) // the NameNode carries it out
				}
			}
			if after != before {
				t.Errorf("the zombie changed the store:\n%s\nbefore:\n%s", after, before)
			}
			log := before[strings.Index(before, logFile+":\n")+len(logFile)+2:]
			switch told := got.err == nil && got.at.Before(replaced); {
			case got.err == nil && !told:
				t.Errorf("the zombie was told that its %s is done after it was replaced", under.kind)
			case !strings.HasPrefix(log, zombieLine) || !strings.HasSuffix(log, newLine) || told && under.kind == "append" && !strings.Contains(log, secondLine):
				t.Errorf("told %v, the log reads\n%s", told, log)
			}
			if r, err := restore(ctx, s, "."); err != nil || r.id != 2 {
				t.Errorf("save %d is restored, %v", r.id, err)
			}
		})
	}
}
