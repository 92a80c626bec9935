// Package local is the driver of jobs that run on one machine: a container is
// an agent's process in a directory of its own. There is nothing to wait for,
// so every Ask is answered at once.
//
// Each container has one goroutine, which waits for its process; Finish ends
// the processes and waits for the goroutines.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"holdfast/am"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/mailbox"
	"holdfast/proto"
)

// Config is what the driver starts agents with.
type Config struct {
	Executable string // yarn-submit
	Job        string // the job's id
	Dir        string // the job's directory, a local path
	Master     string // host:port of the AM
	// AgentKeys returns proto.SecretAgent of the agent in a container.
	AgentKeys func(container string) ([]byte, error)
}

// Driver implements am.Driver.
type Driver struct {
	cfg    Config
	events *mailbox.Mailbox[event.Event]
	wg     sync.WaitGroup

	count   int // of containers, ever
	mu      sync.Mutex
	running map[string]*os.Process
}

var _ am.Driver = (*Driver)(nil)

// New returns a driver without containers.
func New(cfg Config) *Driver {
	return &Driver{cfg: cfg, events: mailbox.New[event.Event](), running: map[string]*os.Process{}}
}

// Events implements am.Driver.
func (d *Driver) Events() *mailbox.Mailbox[event.Event] { return d.events }

// Superseded implements am.Driver. There is never another master.
func (d *Driver) Superseded() <-chan error { return nil }

// Ask implements am.Driver.
func (d *Driver) Ask(a action.Ask) {
	d.count++
	d.events.Put(event.Allocated{Request: a.Request, Container: fmt.Sprintf("container-%d", d.count), Node: "localhost"})
}

// PreviousContainers implements am.Driver. Nothing outlives a local master.
func (d *Driver) PreviousContainers() map[string]string { return nil }

// Withdraw implements am.Driver. Every Ask has been answered.
func (d *Driver) Withdraw(string) {}

// Launch implements am.Driver.
func (d *Driver) Launch(container string) {
	cmd, err := d.start(container)
	if err != nil {
		d.events.Put(event.LaunchFailed{Container: container, Why: fmt.Sprintf("starting the agent of %s: %v", container, err)})
		return
	}
	d.mu.Lock()
	d.running[container] = cmd.Process
	d.mu.Unlock()
	d.wg.Go(func() {
		err := cmd.Wait()
		d.mu.Lock()
		_, mine := d.running[container]
		delete(d.running, container)
		d.mu.Unlock()
		end := event.ContainerEnded{Container: container, Cause: event.CauseOwnFault, Exit: cmd.ProcessState.ExitCode()}
		if !mine {
			end.Cause = event.CauseReleased
		}
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			end.Diagnostics = fmt.Sprintf("the agent's process: %v", exit)
		}
		d.events.Put(end)
	})
}

func (d *Driver) start(container string) (*exec.Cmd, error) {
	dir := filepath.Join(d.cfg.Dir, "containers", container)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keys, err := d.cfg.AgentKeys(container)
	if err != nil {
		return nil, err
	}
	secrets := token.New()
	secrets.Secrets[proto.SecretAgent] = keys
	credentials := filepath.Join(dir, "credentials")
	if err := secrets.WriteFile(credentials); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, "agent.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the agent has a descriptor of its own
	cmd := exec.Command(d.cfg.Executable, "agent")
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(),
		proto.EnvJob+"="+d.cfg.Job,
		proto.EnvJobDirectory+"="+d.cfg.Dir,
		proto.EnvMaster+"="+d.cfg.Master,
		proto.EnvContainer+"="+container,
		proto.EnvHost+"=127.0.0.1",
		proto.EnvCredentials+"="+credentials,
	)
	// A Ctrl-C in the terminal is for the client alone.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// Release implements am.Driver. All that an agent started dies with it.
func (d *Driver) Release(container string) {
	d.mu.Lock()
	p := d.running[container]
	delete(d.running, container)
	d.mu.Unlock()
	if p != nil {
		_ = p.Kill() // it may have ended just now
	}
}

// Check implements am.Driver. A process's end is known at once.
func (d *Driver) Check(string) {}

// Finish implements am.Driver.
func (d *Driver) Finish(ctx context.Context, _ action.Finish) error {
	d.mu.Lock()
	var left []string
	for c := range d.running {
		left = append(left, c)
	}
	d.mu.Unlock()
	for _, c := range left {
		d.Release(c)
	}
	done := make(chan struct{})
	go func() {
		d.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the agents' processes to end: %w", ctx.Err())
	}
}
