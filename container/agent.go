package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/proctree"
	"holdfast/container/sandbox"
	"holdfast/proto"
)

// How long things may take at the end.
const (
	byeGrace   = 2 * time.Second // from SIGTERM to SIGKILL, when the AM says Bye
	endGrace   = 200 * time.Millisecond
	closeLimit = 10 * time.Second
)

// agent is the state of Run's loop.
type agent struct {
	cfg  Config
	log  *logrus.Entry
	box  *sandbox.Box
	line *line

	task    *task    // once assigned; prepare's own until it is done
	ready   bool     // task is prepared
	attempt *attempt // the running one
	ended   chan *proto.Exited
	commits *commits
	wg      sync.WaitGroup // attempts' goroutines and copies of output
}

// Run runs an agent to its end. It returns nil after the AM's Bye or when ctx
// ends, and an error if it could not go on; the task has ended in any case.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	box, err := sandbox.Start(ctx, sandbox.Options{
		Exe: cfg.Exe, NoNamespace: cfg.NoNamespace, UserNamespace: cfg.UserNamespace, NoSteering: cfg.NoSteering,
	})
	if err != nil {
		return err
	}
	defer box.Close()
	l, err := attend(ctx, cfg)
	if err != nil {
		return err
	}
	defer l.close()
	a := &agent{cfg: cfg, log: cfg.Log, box: box, line: l, ended: make(chan *proto.Exited), commits: newCommits()}
	return a.run(ctx)
}

func (a *agent) run(ctx context.Context) error {
	prepareCtx, cancel := context.WithCancel(ctx)
	prepared := make(chan error, 1)
	preparing := false
	grace := time.Duration(0)
	defer func() {
		cancel()
		if preparing {
			<-prepared
		}
		a.end(grace)
	}()
	var memory trimmer
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: &proto.Hello{
		Container: a.cfg.Container, Host: a.cfg.Host, Pid: int32(os.Getpid()),
	}}})
	for {
		select {
		case <-ctx.Done():
			grace = endGrace
			return nil
		case <-a.box.Done():
			return fmt.Errorf("the task's surroundings are gone: %w", a.box.Err())
		case m, open := <-a.line.in:
			if !open {
				return fmt.Errorf("the connection to the application master at %s broke, so the task was stopped: %w", a.cfg.Master, a.line.err)
			}
			switch m := m.Message.(type) {
			case *proto.ToAgent_Assign:
				if a.task != nil {
					return errors.New("the application master assigned a second task to this container")
				}
				preparing = true
				a.task = newTask(a.cfg, m.Assign)
				go func() { prepared <- a.task.prepare(prepareCtx, a.cfg, a.box, a.commits) }()
			case *proto.ToAgent_Start:
				a.start(m.Start)
			case *proto.ToAgent_Stop:
				if a.attempt != nil {
					a.attempt.stop(time.Duration(m.Stop.GraceMs) * time.Millisecond)
				}
			case *proto.ToAgent_Routes:
				if a.ready {
					a.task.route(m.Routes.Routes, m.Routes.Cut, a.box)
				}
			case *proto.ToAgent_Renewed:
				if a.task != nil {
					a.task.lease.renew(m.Renewed.SentNs)
				}
			case *proto.ToAgent_Bye:
				a.log.WithField("why", m.Bye.Why).Info("told to end")
				grace = byeGrace
				return nil
			}
		case err := <-prepared:
			preparing = false
			if err != nil {
				a.task.log.WithError(err).Error("cannot prepare for the task")
				a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Trouble{Trouble: asTrouble(err)}})
				continue
			}
			a.ready = true
			a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: a.task.prepared}})
		case e := <-a.ended:
			a.attempt = nil
			a.tellCommits() // before Exited: what it saved is known when its end is judged
			a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: e}})
		case <-a.commits.ready:
			a.tellCommits()
		case now := <-beat.C:
			if a.task != nil {
				if err := a.task.lease.over(); err != nil {
					return err
				}
			}
			memory.trim(now)
			b := &proto.Beat{SentNs: clock(), AgentRssBytes: proctree.RSS(os.Getpid()) + proctree.Anonymous(a.box.Pid())}
			if a.attempt != nil {
				b.RssBytes = proctree.RSS(a.box.Processes()...)
			}
			a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Beat{Beat: b}})
		}
	}
}

// start runs an attempt; that it cannot be run is its exit.
func (a *agent) start(s *proto.Start) {
	log := a.log.WithField("attempt", s.Attempt)
	if a.task != nil {
		log = a.task.log.WithField("attempt", s.Attempt)
	}
	refuse := func(err error) {
		log.WithError(err).Error("cannot start the task")
		a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: notRun(s.Attempt, err)}})
	}
	if !a.ready {
		refuse(errors.New("told to start a task before it was prepared"))
		return
	}
	if a.attempt != nil {
		refuse(fmt.Errorf("told to start while attempt %d is running", a.attempt.number))
		return
	}
	a.task.route(s.Routes, nil, a.box)
	at, err := a.task.run(a.cfg, a.box, s, log, &a.wg)
	if err != nil {
		refuse(err)
		return
	}
	a.attempt = at
	log.WithField("pid", at.process.Pid).Info("started")
	a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Started{Started: &proto.Started{
		Attempt: s.Attempt, Pid: int32(at.process.Pid), AtUnixMs: at.started.UnixMilli(),
	}}})
	a.wg.Go(func() { a.ended <- at.wait() })
}

func (a *agent) tellCommits() {
	for _, c := range a.commits.take() {
		a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: c}})
	}
}

// end stops the task and gives back all it held. Without grace, somebody may
// be about to take the task's place: first of all it can commit nothing more.
func (a *agent) end(grace time.Duration) {
	if a.task != nil && grace == 0 {
		a.task.fence(errors.New("this agent has lost its application master, or its task's surroundings"))
	}
	if a.attempt != nil {
		a.attempt.stop(grace)
		e := <-a.ended
		a.attempt = nil
		a.tellCommits()
		a.line.say(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: e}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	if err := a.box.KillAll(ctx); err != nil {
		a.log.WithError(err).Error("something of the task does not end")
		if a.task != nil {
			a.task.fence(err)
		}
	}
	a.wg.Wait() // each is bounded
	if a.task != nil {
		a.task.close(ctx, a.box)
	}
}
