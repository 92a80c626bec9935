package warm

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/sandbox"
	"holdfast/internal/backoff"
)

// settled is how long after its import an attempt counts as settled.
const settled = 10 * time.Second

// Options are what a Standby needs.
type Options struct {
	Box   *sandbox.Box
	Notes string        // where the start-up file leaves its notes
	After time.Duration // from the script's import to that of the next interpreter; 0: settled
	Log   *logrus.Entry
}

// Known is what an agent knows about its task's script, for other agents.
type Known struct {
	ImportProfile
	Refused string // why the script can have no warm interpreter; empty: it can
}

// Standby starts a task's attempts, and keeps a warm interpreter for the next.
// Exec and Close are called by one goroutine; the others from any.
type Standby struct {
	o       Options
	ctx     context.Context
	cancel  context.CancelFunc
	tending sync.WaitGroup
	stop    context.CancelFunc // ends what tending waits for

	mu        sync.Mutex
	limit     int64 // bytes that the container may use; 0: no limit of its own
	begun     bool  // Exec was called
	process   *interpreter
	ready     bool
	refused   string // why there is to be none
	prewarmed bool   // Prewarm has been completed
	status    string // for the user
	known     Known
	version   int // of known
}

// New returns a Standby without an interpreter.
func New(o Options) *Standby {
	if o.After == 0 {
		o.After = settled
	}
	s := &Standby{o: o, stop: func() {}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Limit sets how many bytes the container may use; 0: as many as the machine has.
func (s *Standby) Limit(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = bytes
}

// Prewarm makes an interpreter before the first attempt, for a command like that attempt's,
// with the import profile that another container has found: at full speed if soon, else
// slowly. An interpreter for a different command is ended. It must not be called concurrently.
func (s *Standby) Prewarm(c sandbox.Command, profile ImportProfile, soon bool) {
	name := module(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.refused != "" || s.begun || s.ctx.Err() != nil {
		s.prewarmed = true
		return
	}
	if i := s.process; i != nil {
		if difference(i, c) == "" && reflect.DeepEqual(i.profile, profile) {
			if soon {
				i.hurry()
			}
			return
		}
		s.o.Log.Info("the warm interpreter is of no use: it was made for another command")
		s.process, s.ready, s.prewarmed = nil, false, false
		s.stop()
		s.tending.Go(i.end)
	}
	s.tend(func(ctx context.Context) {
		made := s.make(ctx, name, c, profile, soon)
		s.mu.Lock()
		s.prewarmed = s.prewarmed || ctx.Err() == nil
		s.mu.Unlock()
		if made {
			s.watch(ctx)
		}
	})
}

// Prewarmed reports whether Prewarm was called and has been completed: the interpreter is
// ready, or there will be none.
func (s *Standby) Prewarmed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prewarmed
}

// Exec starts an attempt, from the warm interpreter if there is a suitable one: then warm is
// true. Errors are those of sandbox.Box.Exec.
func (s *Standby) Exec(c sandbox.Command) (p *sandbox.Process, warm bool, err error) {
	s.mu.Lock()
	s.begun = true
	s.stop()
	s.mu.Unlock()
	s.tending.Wait()
	if i, ready := s.take(c); i != nil {
		begun := time.Now()
		begin, status := i.fork, "came from a warm interpreter, which is ready again"
		if !ready {
			begin, status = i.become, "came from an interpreter that had begun to import before"
		}
		if p, err = begin(c); err == nil {
			s.o.Log.WithFields(logrus.Fields{"took": time.Since(begun), "ready": ready}).Info("started from the warm interpreter")
			if !ready {
				s.release(i)
			}
			s.setStatus(status)
			s.maintain(c, p, i)
			return p, true, nil
		}
		s.o.Log.WithError(err).Warn("the warm interpreter failed; the attempt starts the ordinary way")
		s.drop("")
	}
	if p, err = s.o.Box.Exec(c); err == nil {
		s.maintain(c, p, nil)
	}
	return p, false, err
}

// take returns the interpreter if it is suitable for a command, and whether it is ready. It
// ends one that is not suitable.
func (s *Standby) take(c sandbox.Command) (i *interpreter, ready bool) {
	s.mu.Lock()
	i, ready = s.process, s.ready
	s.mu.Unlock()
	if i == nil {
		return nil, false
	}
	reason := ""
	select {
	case <-i.process.Done():
		reason = "it has ended"
	default:
		if d := difference(i, c); d != "" {
			reason = "the attempt's " + d + " is not its own"
		}
	}
	if reason != "" {
		s.o.Log.Infof("the warm interpreter is of no use: %s", reason)
		s.drop("")
		return nil, false
	}
	return i, ready
}

// release forgets an interpreter that has become an attempt, and leaves it running.
func (s *Standby) release(i *interpreter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == i {
		s.process = nil
	}
}

// tend runs f until Exec or Close; s.mu is held.
func (s *Standby) tend(f func(context.Context)) {
	ctx, stop := context.WithCancel(s.ctx)
	s.stop = stop
	s.tending.Go(func() { f(ctx) })
}

// maintain has a warm interpreter ready from some time after the start of an attempt until
// the next Exec. It makes one if there is none: with the profile of from, from which the
// attempt was forked, or else with that of the attempt.
func (s *Standby) maintain(c sandbox.Command, p *sandbox.Process, from *interpreter) {
	name := module(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.refused != "" {
		return
	}
	s.tend(func(ctx context.Context) {
		if s.current() == nil {
			profile, ok := s.study(ctx, c, p, from)
			if !ok || !s.make(ctx, name, c, profile, false) {
				return
			}
		}
		s.watch(ctx)
	})
}

// checkEvery is how often memory is looked at.
const checkEvery = 2 * time.Second

// make makes the interpreter, and reports whether it is ready. When ctx ends, it returns and
// leaves the interpreter as it is.
func (s *Standby) make(ctx context.Context, name string, c sandbox.Command, profile ImportProfile, soon bool) bool {
	s.mu.Lock()
	limit := s.limit
	s.mu.Unlock()
	if err := shortage(s.o.Box, limit, reserve, false); err != nil {
		s.giveUp(err.Error())
		return false
	}
	err := s.prepare(ctx, name, c, profile, soon)
	switch {
	case err == nil:
		return true
	case errors.Is(err, errDropped):
	case errors.Is(err, errNoRoom):
		s.giveUp(err.Error())
	case errors.Is(err, errRefused):
		s.Refuse(err.Error())
	case ctx.Err() == nil:
		s.giveUp("making it: " + err.Error())
	}
	return false
}

// errDropped: the interpreter was ended during its import, since it was not suitable for an
// attempt that was started.
var errDropped = errors.New("it is not needed any longer")

// errNoRoom: there is not enough memory for an interpreter.
var errNoRoom = errors.New("memory is short")

func (s *Standby) prepare(ctx context.Context, name string, c sandbox.Command, profile ImportProfile, soon bool) error {
	begun := time.Now()
	i, err := start(s.o.Box, c, profile)
	if err != nil {
		return err
	}
	if soon {
		i.hurry()
	}
	s.mu.Lock()
	if ctx.Err() != nil || s.process != nil {
		s.mu.Unlock()
		i.end()
		return ctx.Err()
	}
	s.process, s.status = i, "its warm interpreter imports "+name
	limit := s.limit
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() { // the import itself may take too much
		defer close(done)
		for backoff.Sleep(ctx, checkEvery/4) {
			if err := shortage(s.o.Box, limit, i.rss(), true); err != nil {
				cancel(fmt.Errorf("%w: %w", errNoRoom, err))
			}
		}
	}()
	err = i.prepare(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, errNoRoom) {
		err = cause
	}
	cancel(nil)
	<-done
	s.mu.Lock()
	dropped := s.process != i
	if err == nil && !dropped {
		s.ready, s.status = true, "a warm interpreter is ready"
	}
	s.mu.Unlock()
	if dropped {
		return errDropped
	}
	if err != nil {
		return err
	}
	s.o.Log.WithFields(logrus.Fields{"took": time.Since(begun), "rss": i.rss()}).Infof("a warm interpreter that has imported %s is ready", name)
	return nil
}

// watch ends the interpreter when memory gets short.
func (s *Standby) watch(ctx context.Context) {
	for backoff.Sleep(ctx, checkEvery) {
		i := s.current()
		if i == nil {
			return
		}
		s.mu.Lock()
		limit := s.limit
		s.mu.Unlock()
		if err := shortage(s.o.Box, limit, i.rss(), true); err != nil {
			s.giveUp(err.Error())
			return
		}
	}
}

func (s *Standby) setStatus(status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// setKnown records what other agents are to know.
func (s *Standby) setKnown(k Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = k
	s.version++
}

// Known returns what is known of how the script imports the module, and the version of that,
// which is 0 as long as nothing is known.
func (s *Standby) Known() (k Known, version int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.version
}

func (s *Standby) current() *interpreter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Refuse ends the interpreter and prevents others, since the script or its module does not
// work when it is forked.
func (s *Standby) Refuse(why string) {
	s.setKnown(Known{Refused: why})
	s.giveUp(why)
}

// giveUp ends the interpreter and prevents others in this container.
func (s *Standby) giveUp(why string) {
	s.mu.Lock()
	s.refused = why
	s.mu.Unlock()
	s.o.Log.Infof("no warm interpreter: %s", why)
	s.drop("no warm interpreter: " + why)
}

// drop ends the interpreter, if there is one.
func (s *Standby) drop(status string) {
	s.mu.Lock()
	i := s.process
	s.process, s.ready, s.status = nil, false, status
	s.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// State describes the interpreter, for the user, and returns its resident memory in bytes,
// 0 if there is none.
func (s *Standby) State() (status string, rss int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		rss = s.process.rss()
	}
	return s.status, rss
}

// Close ends the interpreter, and waits for the goroutines that Exec has started, except those
// of attempts.
func (s *Standby) Close() {
	s.cancel()
	s.tending.Wait()
	s.drop("")
}
