package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am"
	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// lan is a network of hosts: namespaces of this machine, joined by a bridge on
// which the test itself has an address.
type lan struct {
	t     *testing.T
	test  netip.Addr // the test's address
	hosts []*netHost
	// forbid is a system call that agents may not use.
	forbid string
}

type netHost struct {
	name    string // of its namespace
	address netip.Addr
	port    string // of the bridge, to which it is connected
}

var lans atomic.Int32 // that were made

// newLAN makes so many hosts with addresses of one family.
func newLAN(t *testing.T, hosts int, v6 bool) *lan {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("hosts of their own are network namespaces, and making them needs root: run the tests as root")
	}
	// Names and addresses by which networks at the same time do not meet.
	own := os.Getpid()*8 + int(lans.Add(1)%8)
	id := fmt.Sprintf("hf%x", own)
	bits, prefix := 24, netip.AddrFrom4([4]byte{10, byte(64 + own/256%128), byte(own), 0})
	if v6 {
		bits, prefix = 64, netip.MustParseAddr(fmt.Sprintf("fd77:%x::", own%65536))
	}
	l := &lan{t: t, test: prefix.Next()}
	ip := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s (install it: apt-get install iproute2)", strings.Join(args, " "), err, out)
		}
	}
	undo := func(args ...string) {
		t.Cleanup(func() {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
			}
		})
	}
	assign := func(a netip.Addr, device string, in ...string) {
		t.Helper()
		args := append(append([]string{}, in...), "address", "add", fmt.Sprintf("%s/%d", a, bits), "dev", device)
		if v6 {
			args = append(args, "nodad") // else it is of no use for a second
		}
		ip(args...)
	}
	bridge := id + "b"
	ip("link", "add", bridge, "type", "bridge")
	undo("link", "del", bridge)
	assign(l.test, bridge)
	ip("link", "set", bridge, "up")
	at := l.test
	for n := range hosts {
		at = at.Next()
		h := &netHost{name: fmt.Sprintf("%s-%d", id, n), address: at, port: fmt.Sprintf("%sp%d", id, n)}
		ip("netns", "add", h.name)
		undo("netns", "del", h.name)
		ip("link", "add", h.port, "type", "veth", "peer", "name", "eth0", "netns", h.name)
		undo("link", "del", h.port) // with its namespace it would go, but later
		ip("link", "set", h.port, "master", bridge, "up")
		ip("-n", h.name, "link", "set", "lo", "up")
		assign(at, "eth0", "-n", h.name)
		ip("-n", h.name, "link", "set", "eth0", "up")
		l.hosts = append(l.hosts, h)
	}
	return l
}

// silence cuts a host off: what is sent to it is lost, and nobody is told.
func (h *netHost) silence(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", h.port, "down").CombinedOutput(); err != nil {
		t.Fatalf("cutting %s off: %v: %s", h.name, err, out)
	}
}

// lanDriver is the driver of a job whose containers are on the hosts of a LAN, in
// the order that place gives.
type lanDriver struct {
	lan    *lan
	job    string
	dir    string
	master string // where it is found
	keys   jobtls.Set
	place  func(request string, asks int) int
	events *mailbox.Mailbox[event.Event]

	mu   sync.Mutex
	asks int
	on   map[string]*netHost
	runs map[string]*exec.Cmd
	wg   sync.WaitGroup
}

var _ am.Driver = (*lanDriver)(nil)

func (d *lanDriver) Events() *mailbox.Mailbox[event.Event] { return d.events }
func (d *lanDriver) Superseded() <-chan error              { return nil }
func (d *lanDriver) PreviousContainers() map[string]string { return nil }
func (d *lanDriver) Withdraw(string)                       {}
func (d *lanDriver) Check(string)                          {}

func (d *lanDriver) Ask(a action.Ask) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.lan.hosts[d.place(a.Request, d.asks)]
	d.asks++
	container := fmt.Sprintf("container-%d", d.asks)
	d.on[container] = h
	d.events.Put(event.Allocated{Request: a.Request, Container: container, Node: h.name})
}

func (d *lanDriver) Launch(container string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	cmd, err := d.start(container)
	if err != nil {
		d.events.Put(event.LaunchFailed{Container: container, Why: err.Error()})
		return
	}
	d.runs[container] = cmd
	d.wg.Go(func() { _ = cmd.Wait() }) // the cluster would not hear it of a lost host either
}

func (d *lanDriver) start(container string) (*exec.Cmd, error) {
	dir := filepath.Join(d.dir, "containers", container)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keys, err := d.keys.Master.Admit(d.keys.Agent, container)
	if err != nil {
		return nil, err
	}
	secrets := token.New()
	secrets.Secrets[proto.SecretAgent] = keys.Marshal()
	credentials := filepath.Join(dir, "credentials")
	if err := secrets.WriteFile(credentials); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "agent.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	h := d.on[container]
	command := []string{submit, "agent"}
	if d.lan.forbid != "" {
		test, err := os.Executable()
		if err != nil {
			return nil, err
		}
		command = append([]string{test, "part-forbidden", d.lan.forbid}, command...)
	}
	cmd := exec.Command("ip", append([]string{"netns", "exec", h.name}, command...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(os.Environ(),
		proto.EnvJob+"="+d.job, proto.EnvJobDirectory+"="+d.dir, proto.EnvMaster+"="+d.master,
		proto.EnvContainer+"="+container, proto.EnvHost+"="+h.address.String(), proto.EnvCredentials+"="+credentials,
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

func (d *lanDriver) Release(container string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if cmd := d.runs[container]; cmd != nil {
		if d.cut(container) {
			return // a lost host does not hear it
		}
		_ = cmd.Process.Kill()
		d.events.Put(event.ContainerEnded{Container: container, Cause: event.CauseReleased})
	}
}

// cut reports whether a container's host was cut off.
func (d *lanDriver) cut(container string) bool {
	b, err := os.ReadFile("/sys/class/net/" + d.on[container].port + "/operstate")
	return err == nil && strings.TrimSpace(string(b)) == "down"
}

func (d *lanDriver) Finish(context.Context, action.Finish) error {
	d.mu.Lock()
	for _, cmd := range d.runs {
		_ = cmd.Process.Kill()
	}
	d.mu.Unlock()
	d.wg.Wait()
	return nil
}

// lanJob is a job on a LAN, whose application master is in this process.
type lanJob struct {
	t      *testing.T
	master *am.Master
	dir    string
}

// run runs a job. limits are core's.
func (l *lan) run(spec *proto.JobSpec, limits core.Limits, place func(request string, asks int) int) *lanJob {
	l.t.Helper()
	if err := runtime.Complete(spec); err != nil {
		l.t.Fatal(err)
	}
	// Not below the test's directory: sockets in it need short names.
	dir, err := os.MkdirTemp(scratch, "lan-")
	if err != nil {
		l.t.Fatal(err)
	}
	ctx := context.WithoutCancel(l.t.Context())
	ckptStore, err := store.Open(ctx, dir, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	keys, err := jobtls.New("lan")
	if err != nil {
		l.t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(&testWriter{l.t})
	at, err := server.Listen(l.test.String())
	if err != nil {
		l.t.Fatal(err)
	}
	const attempt = 1
	if err := recovery.Announce(ctx, ckptStore, attempt, at.Address()); err != nil {
		l.t.Fatal(err)
	}
	m, err := am.New(am.Config{
		ID: filepath.Base(dir), Spec: spec, Dir: ckptStore, Keys: keys.Master, Listener: at, Attempt: attempt,
		Limits: limits, Log: logrus.NewEntry(log),
		OpenStore: func(ctx context.Context, uri string) (store.Store, error) { return store.Open(ctx, uri, nil) },
	})
	if err != nil {
		l.t.Fatal(err)
	}
	d := &lanDriver{
		lan: l, job: filepath.Base(dir), dir: dir, master: at.Address(), keys: keys, place: place,
		events: mailbox.New[event.Event](), on: map[string]*netHost{}, runs: map[string]*exec.Cmd{},
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := m.Run(ctx, d); err != nil {
			l.t.Errorf("running the job: %v", err)
		}
	}()
	l.t.Cleanup(func() {
		m.Kill("the test is over")
		<-done
		ckptStore.Close()
	})
	return &lanJob{t: l.t, master: m, dir: dir}
}

type testWriter struct{ t *testing.T }

func (w *testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

// until waits until the job is as it should be.
func (j *lanJob) until(what string, ok func(*proto.JobStatus) bool) *proto.JobStatus {
	j.t.Helper()
	deadline := time.After(tfLimit)
	for {
		s, changed := j.master.Status().Snapshot()
		if ok(s) {
			return s
		}
		if s.State.Done() {
			j.t.Fatalf("waited for %s; the job is over: %s", what, s.Why)
		}
		select {
		case <-changed:
		case <-deadline:
			j.t.Fatalf("in vain waited for %s; the job is\n%s\n%s", what, protojson.Format(s), j.logs())
		}
	}
}

// logs are the ends of what the tasks have printed.
func (j *lanJob) logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(j.dir, "containers", "*", "*.log"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		fmt.Fprintf(&all, "---- %s\n%s\n", f, tail(string(b), 30))
	}
	return all.String()
}
