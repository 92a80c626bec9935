package warm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sirupsen/logrus"

	"holdfast/container/sandbox"
	"holdfast/proto"
)

// settled is how long after its import an attempt is taken to be at work.
const settled = 10 * time.Second

// perAttempt are the variables by which attempts of a task differ.
var perAttempt = []string{"HOLDFAST_ATTEMPT", "HOLDFAST_GENERATION"}

// Options are what a Standby needs.
type Options struct {
	Box   *sandbox.Box
	Notes string        // where the start-up file leaves its notes
	Limit int64         // bytes that the container may use; 0: no limit of its own
	After time.Duration // from the script's import to ours; 0: a while
	Log   *logrus.Entry
}

// Standby starts a task's attempts, and keeps a warm interpreter for the next.
// Exec and Close are called by one goroutine; the others from any.
type Standby struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	tending sync.WaitGroup

	mu      sync.Mutex
	process *interpreter
	ready   bool
	refused string // why there is to be none
	says    string
}

// New is a Standby without an interpreter.
func New(o Options) *Standby {
	if o.After == 0 {
		o.After = settled
	}
	s := &Standby{o: o}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Exec starts an attempt, by a fork of the warm interpreter if there is one
// that does for it: forked says so. Errors are those of sandbox.Box.Exec.
func (s *Standby) Exec(c sandbox.Command) (p *sandbox.Process, forked bool, err error) {
	s.tending.Wait() // for the last attempt's, which ends with it
	if i := s.take(c); i != nil {
		begun := time.Now()
		if p, err = i.fork(c); err == nil {
			s.o.Log.WithField("took", time.Since(begun)).Info("forked from the warm interpreter")
			s.say("came from a warm interpreter, which is ready again")
			s.tend(c, p)
			return p, true, nil
		}
		s.o.Log.WithError(err).Warn("the warm interpreter failed; the attempt starts the ordinary way")
		s.drop("")
	}
	if p, err = s.o.Box.Exec(c); err == nil {
		s.tend(c, p)
	}
	return p, false, err
}

// take gives the interpreter if it is ready and does for a command; one that
// does not is ended.
func (s *Standby) take(c sandbox.Command) *interpreter {
	s.mu.Lock()
	i, ready := s.process, s.ready
	s.mu.Unlock()
	if i == nil {
		return nil
	}
	reason := ""
	select {
	case <-i.process.Done():
		reason = "it has ended"
	default:
		if !ready {
			reason = "it was not ready"
		} else if d := difference(i.command, c); d != "" {
			reason = "the attempt's " + d + " is not its own"
		}
	}
	if reason != "" {
		s.o.Log.Infof("the warm interpreter is of no use: %s", reason)
		s.drop("")
		return nil
	}
	return i
}

// difference says in what two attempts' commands differ; empty: in nothing
// that was there when the interpreter was made.
func difference(a, b sandbox.Command) string {
	switch {
	case !slices.Equal(a.Argv, b.Argv):
		return "command"
	case a.Dir != b.Dir:
		return "directory"
	}
	of := func(env []string) map[string]string {
		m := map[string]string{}
		for _, kv := range env {
			name, v, _ := strings.Cut(kv, "=")
			if !slices.Contains(perAttempt, name) {
				m[name] = v
			}
		}
		return m
	}
	was, is := of(a.Env), of(b.Env)
	for name, v := range is {
		if old, ok := was[name]; !ok || old != v {
			return "environment variable " + name
		}
		delete(was, name)
	}
	for name := range was {
		return "environment variable " + name
	}
	return ""
}

// module is what a command is to have imported; empty: nothing.
func module(c sandbox.Command) string {
	for _, kv := range c.Env {
		if !utf8.ValidString(kv) {
			return "" // JSON cannot carry it
		}
	}
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, proto.EnvWarm+"="); ok {
			return v
		}
	}
	return ""
}

// tend looks after the interpreter while an attempt runs.
func (s *Standby) tend(c sandbox.Command, p *sandbox.Process) {
	name := module(c)
	if name == "" || s.off() {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.tending.Go(func() {
		defer cancel()
		go func() {
			<-p.Done() // at the latest when the box is closed
			cancel()
		}()
		if s.kept() == nil && !s.make(ctx, name, c, p) {
			return
		}
		s.watch(ctx)
	})
}

const look = 2 * time.Second

// make makes the interpreter, once p has shown how and is at work; false if
// that is not to be.
func (s *Standby) make(ctx context.Context, name string, c sandbox.Command, p *sandbox.Process) bool {
	how, err := s.learn(ctx, c, p)
	if err == nil && how.Refused != "" {
		err = fmt.Errorf("%w: %s", errRefused, how.Refused)
	}
	if err == nil && !wait(ctx, s.o.After) {
		return false
	}
	if err == nil {
		if err = shortage(s.o.Box, s.o.Limit, reserve, false); err != nil {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
	}
	if err == nil {
		err = s.prepare(ctx, name, c, how.importing)
	}
	switch {
	case err == nil:
		return true
	case errors.Is(err, errRefused):
		s.Refuse(err.Error())
	case ctx.Err() == nil:
		s.Refuse("making it: " + err.Error())
	default:
		s.drop("")
	}
	return false
}

func (s *Standby) prepare(ctx context.Context, name string, c sandbox.Command, how importing) error {
	begun := time.Now()
	i, err := start(s.o.Box, c)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process, s.says = i, "its warm interpreter imports "+name
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() { // the import itself may be what takes too much
		defer close(done)
		for wait(ctx, look/4) {
			if err := shortage(s.o.Box, s.o.Limit, i.rss(), true); err != nil {
				cancel(fmt.Errorf("%w: %w", errRefused, err))
			}
		}
	}()
	err = i.prepare(ctx, how)
	if cause := context.Cause(ctx); errors.Is(cause, errRefused) {
		err = cause
	}
	cancel(nil)
	<-done
	if err != nil {
		return err
	}
	s.mu.Lock()
	if s.process == i { // nobody has refused it meanwhile
		s.ready, s.says = true, "a warm interpreter is ready"
	}
	s.mu.Unlock()
	s.o.Log.WithFields(logrus.Fields{"took": time.Since(begun), "rss": i.rss()}).Infof("a warm interpreter that has imported %s is ready", name)
	return nil
}

// watch ends the interpreter when memory gets short.
func (s *Standby) watch(ctx context.Context) {
	for wait(ctx, look) {
		i := s.kept()
		if i == nil {
			return
		}
		if err := shortage(s.o.Box, s.o.Limit, i.rss(), true); err != nil {
			s.Refuse(err.Error())
			return
		}
	}
}

// note is what the start-up file wrote about the main program of an attempt.
type note struct {
	importing
	Refused string `json:"refused"`
}

// learn waits for the note of the process that c started.
func (s *Standby) learn(ctx context.Context, c sandbox.Command, p *sandbox.Process) (note, error) {
	file := filepath.Join(s.o.Notes, fmt.Sprintf("imported-%d.json", p.Pid))
	for {
		b, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			if !wait(ctx, look/4) {
				return note{}, ctx.Err()
			}
			continue
		}
		if err != nil {
			return note{}, err
		}
		_ = os.Remove(file) // it may hold what the script keeps secret
		// A shell that does something and then becomes Python must not do it twice.
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.Pid))
		if err != nil {
			return note{}, err
		}
		if string(line) != strings.Join(c.Argv, "\x00")+"\x00" {
			return note{Refused: "the task's command does more than to run Python"}, nil
		}
		var n note
		err = json.Unmarshal(b, &n)
		return n, err
	}
}

// wait waits; false if ctx has ended.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

func (s *Standby) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = what
}

func (s *Standby) off() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused != ""
}

func (s *Standby) kept() *interpreter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Refuse ends the interpreter, and there is no other from now on.
func (s *Standby) Refuse(why string) {
	s.mu.Lock()
	s.refused = why
	s.mu.Unlock()
	s.o.Log.Infof("no warm interpreter: %s", why)
	s.drop("no warm interpreter: " + why)
}

// drop ends the interpreter, if there is one.
func (s *Standby) drop(says string) {
	s.mu.Lock()
	i := s.process
	s.process, s.ready, s.says = nil, false, says
	s.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// State is what is to be said of the interpreter, and its resident memory in
// bytes, 0 if there is none.
func (s *Standby) State() (says string, rss int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		rss = s.process.rss()
	}
	return s.says, rss
}

// Close ends the interpreter, and waits for all that Exec has started but the
// attempts.
func (s *Standby) Close() {
	s.cancel()
	s.tending.Wait()
	s.drop("")
}
