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
	After time.Duration // from the script's import to ours; 0: a while
	Log   *logrus.Entry
}

// Known is what an agent can share with others about its task's script.
type Known struct {
	ImportProfile
	Refused string // why no interpreter is to be kept; empty: one may
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
	prewarmed bool   // Prewarm has come to its end
	says      string
	known     Known
	news      int // counts changes of known
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
// with an import profile of another container: at full speed if soon, else slowly. An
// interpreter for a different command is ended. It must not be called concurrently.
func (s *Standby) Prewarm(c sandbox.Command, how ImportProfile, soon bool) {
	name := module(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.refused != "" || s.begun || s.ctx.Err() != nil {
		s.prewarmed = true
		return
	}
	if i := s.process; i != nil {
		if difference(i, c) == "" && reflect.DeepEqual(i.how, how) {
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
		made := s.make(ctx, name, c, how, soon)
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
		way, says := i.fork, "came from a warm interpreter, which is ready again"
		if !ready {
			way, says = i.become, "came from an interpreter that had begun to import before"
		}
		if p, err = way(c); err == nil {
			s.o.Log.WithFields(logrus.Fields{"took": time.Since(begun), "ready": ready}).Info("started from the warm interpreter")
			if !ready {
				s.let(i)
			}
			s.say(says)
			s.attend(c, p, i)
			return p, true, nil
		}
		s.o.Log.WithError(err).Warn("the warm interpreter failed; the attempt starts the ordinary way")
		s.drop("")
	}
	if p, err = s.o.Box.Exec(c); err == nil {
		s.attend(c, p, nil)
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

// let leaves an interpreter running, as an attempt.
func (s *Standby) let(i *interpreter) {
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

// attend maintains the interpreter from the start of an attempt to the next one. It makes
// one if there is none: like from, from which the attempt was forked, or else with the
// import profile of the attempt.
func (s *Standby) attend(c sandbox.Command, p *sandbox.Process, from *interpreter) {
	name := module(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.refused != "" {
		return
	}
	s.tend(func(ctx context.Context) {
		if s.kept() == nil {
			how, ok := s.study(ctx, c, p, from)
			if !ok || !s.make(ctx, name, c, how, false) {
				return
			}
		}
		s.watch(ctx)
	})
}

const look = 2 * time.Second

// make makes the interpreter; false if there can be none. It leaves it as it is when ctx ends.
func (s *Standby) make(ctx context.Context, name string, c sandbox.Command, how ImportProfile, soon bool) bool {
	s.mu.Lock()
	limit := s.limit
	s.mu.Unlock()
	if err := shortage(s.o.Box, limit, reserve, false); err != nil {
		s.giveUp(err.Error())
		return false
	}
	err := s.prepare(ctx, name, c, how, soon)
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
var errDropped = errors.New("it is not wanted any longer")

// errNoRoom: there is not enough memory for an interpreter.
var errNoRoom = errors.New("memory is short")

func (s *Standby) prepare(ctx context.Context, name string, c sandbox.Command, how ImportProfile, soon bool) error {
	begun := time.Now()
	i, err := start(s.o.Box, c, how)
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
	s.process, s.says = i, "its warm interpreter imports "+name
	limit := s.limit
	s.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() { // the import itself may take too much
		defer close(done)
		for backoff.Sleep(ctx, look/4) {
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
		s.ready, s.says = true, "a warm interpreter is ready"
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
	for backoff.Sleep(ctx, look) {
		i := s.kept()
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

func (s *Standby) say(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = what
}

// tell records what is shared with others.
func (s *Standby) tell(k Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = k
	s.news++
}

// Known returns what is known of how the script imports the module, and its version, which
// is 0 as long as nothing is known.
func (s *Standby) Known() (k Known, news int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known, s.news
}

func (s *Standby) kept() *interpreter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Refuse ends the interpreter and prevents others, since the script or its module does not
// work when it is forked.
func (s *Standby) Refuse(why string) {
	s.tell(Known{Refused: why})
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
func (s *Standby) drop(says string) {
	s.mu.Lock()
	i := s.process
	s.process, s.ready, s.says = nil, false, says
	s.mu.Unlock()
	if i != nil {
		i.end()
	}
}

// State describes the interpreter, for the user, and returns its resident memory in bytes,
// 0 if there is none.
func (s *Standby) State() (says string, rss int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		rss = s.process.rss()
	}
	return s.says, rss
}

// Close ends the interpreter, and waits for the goroutines that Exec has started, except those
// of attempts.
func (s *Standby) Close() {
	s.cancel()
	s.tending.Wait()
	s.drop("")
}
