package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/am/status"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// model is a cluster that has room for all.
type model struct {
	events   *mailbox.Mailbox[event.Event]
	launches chan string // as many as there can be

	mu    sync.Mutex
	count int
	asked int // how many asks are still wanted, to be told; 0: none
	lost  int
	again chan struct{} // capacity 1: all that was lost is asked for
}

var _ am.Driver = (*model)(nil)

func (m *model) Events() *mailbox.Mailbox[event.Event] { return m.events }
func (m *model) Superseded() <-chan error              { return nil }
func (m *model) PreviousContainers() map[string]string { return nil }
func (m *model) Withdraw(string)                       {}
func (m *model) Check(string)                          {}
func (m *model) Release(string)                        {}

func (m *model) Ask(a action.Ask) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.count++
	if m.asked > 0 {
		if m.asked--; m.asked == 0 {
			fmt.Println("asked", m.lost)
			m.again <- struct{}{}
		}
	}
	m.events.Put(event.Allocated{Request: a.Request, Container: fmt.Sprintf("c%d", m.count), Node: fmt.Sprintf("n%d", m.count%500)})
}

func (m *model) Launch(container string) { m.launches <- container }

// launch starts agents, one at a tick.
func (m *model) launch(ctx context.Context, pace time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-m.launches:
			fmt.Println("launch", c)
		}
		<-tick.C
	}
}

func (m *model) Finish(context.Context, action.Finish) error {
	return nil
}

// lose ends the first n containers, as the cluster tells it.
func (m *model) lose(n int) {
	m.mu.Lock()
	m.asked, m.lost = n, n
	m.mu.Unlock()
	fmt.Println("losing", n)
	for i := range n {
		m.events.Put(event.ContainerEnded{Container: fmt.Sprintf("c%d", i+1), Cause: event.CauseOwnFault, Exit: 137})
	}
}

// gone reports whether a container was lost.
func (m *model) gone(container string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := strconv.Atoi(strings.TrimPrefix(container, "c"))
	return err == nil && n <= m.lost
}

func readKeys(dir, name string) (jobtls.Keys, error) {
	text, err := os.ReadFile(filepath.Join(dir, name+".keys"))
	if err != nil {
		return jobtls.Keys{}, err
	}
	return jobtls.Unmarshal(text)
}

// job is what a process serves that agents call.
type job struct {
	dir     string
	tasks   int
	pages   int // how many of its pages will be open
	keys    jobtls.Keys
	cluster *model
}

// serve has such a process run until the parent goes.
func serve(ctx context.Context, dir string, tasks, pages int, pace time.Duration, profile string, run func(context.Context, job) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	am.SaveMemory()
	keys, err := readKeys(dir, "master")
	if err != nil {
		return err
	}
	cluster := &model{events: mailbox.New[event.Event](), launches: make(chan string, 2*tasks), again: make(chan struct{}, 1)}
	go cluster.launch(ctx, pace)
	profiles, err := newProfiles(profile)
	if err != nil {
		return err
	}
	go func() { // ends with the parent, which ends the process
		defer cancel()
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			switch verb, object := fields(lines.Text()); verb {
			case "phase":
				profiles.phase(object)
			case "lose":
				if n, err := strconv.Atoi(object); err == nil {
					cluster.lose(n)
				}
			}
		}
	}()
	return run(ctx, job{dir, tasks, pages, keys, cluster})
}

// runMaster runs a master.
func runMaster(ctx context.Context, j job) error {
	ckptStore, err := store.NewLocal(j.dir)
	if err != nil {
		return err
	}
	defer ckptStore.Close()
	services := int32(max(1, j.tasks/10))
	spec := &proto.JobSpec{
		Name: "scale", Framework: "none", Command: []string{"train", "{role}", "{index}"}, Restarts: 3,
		Roles: []*proto.RoleSpec{{Name: "ps", Count: services, MemoryMb: 1024, Vcores: 1}, {Name: "worker", Count: int32(j.tasks) - services, MemoryMb: 1024, Vcores: 1}},
	}
	if err := runtime.Complete(spec); err != nil {
		return err
	}
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	listener, err := server.Listen("127.0.0.1")
	if err != nil {
		return err
	}
	const attempt = 1
	if err := recovery.Announce(ctx, ckptStore, attempt, listener.Address()); err != nil {
		return err
	}
	m, err := am.New(am.Config{
		ID: "scale", Spec: spec, Dir: ckptStore, Keys: j.keys, Attempt: attempt, Listener: listener, Log: logrus.NewEntry(quiet),
		OpenStore: func(_ context.Context, uri string) (store.Store, error) { return store.NewLocal(uri) },
	})
	if err != nil {
		return err
	}
	fmt.Println("address", listener.Address())
	if j.pages > 0 {
		address, err := servePages(ctx, j.dir, spec, m.Status())
		if err != nil {
			return err
		}
		fmt.Println("pages", address)
	}
	go tellRunning(ctx, m.Status(), j.cluster)
	if _, err = m.Run(ctx, j.cluster); err == am.ErrLeft {
		return nil
	}
	return err
}

// tellRunning says how many tasks run in containers that are not lost, whenever
// that is another number; once all do, it looks again when what was lost has been
// asked for.
func tellRunning(ctx context.Context, b *status.Store, cluster *model) {
	last := -1
	for ctx.Err() == nil {
		s, changed := b.Snapshot()
		n := 0
		for _, t := range s.Tasks {
			if t.State == proto.TaskState_TASK_STATE_RUNNING && t.Pid != 0 && !cluster.gone(t.Container) {
				n++
			}
		}
		if n != last {
			last = n
			fmt.Println("running", n)
		}
		waits := changed
		if n == len(s.Tasks) { // a look costs the master something, so that none is taken while the job is idle
			waits, last = cluster.again, -1
		}
		select {
		case <-ctx.Done():
		case <-waits:
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// fields of a line; at least two, so that none need be checked for.
func fields(line string) (verb, object string) {
	verb, object, _ = strings.Cut(line, " ")
	return verb, object
}
