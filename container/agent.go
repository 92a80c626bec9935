package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/failure"
	"holdfast/container/master"
	"holdfast/container/peers"
	"holdfast/container/sandbox"
	"holdfast/container/stage"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/nodump"
	"holdfast/internal/ownlog"
	"holdfast/proto"
	"holdfast/runtime"
)

// How long things may take at the end.
const (
	releaseGrace = 2 * time.Second // from SIGTERM to SIGKILL, when the AM sends Release
	endGrace     = 200 * time.Millisecond
	closeLimit   = 10 * time.Second
)

// began is when this process began, apart from the start of Go's runtime.
var began = time.Now()

// agent is the state of Run's loop.
type agent struct {
	cfg Config
	log *logrus.Entry
	box *sandbox.Box
	dir *jobStore

	stores *store.Opener // of dir, and of all other directories

	conn     *master.Conn // nil while there is no stream
	address  string
	lease    master.Lease // begins with the task
	arrivals chan arrival // of streams that reach has opened
	reaching bool

	stage      *stage.Stage
	told       int                 // version of the import profile that was sent
	prewarmed  bool                // that it has was said on this stream
	task       *task               // once assigned; prepare's own until it is done
	ready      bool                // task is prepared
	failure    *proto.AgentFailure // why it cannot be, or cannot stay
	home       home                // where it is to be kept
	attempt    *attempt            // the running one
	number     int32               // of the running or last attempt; -1: none yet
	generation int32               // of it
	last       *proto.Exited       // how the last attempt ended; nil while one runs
	ended      chan *proto.Exited
	unguarded  bool          // some of the task was not guarded (sandbox.Box.Guard)
	lingers    chan struct{} // a process of the running attempt has said something about that
	commits    *master.Commits
	usage      usage // of the task
	execs      *execs
	ownLog     *ownlog.Copy   // nil: its log is not copied
	wg         sync.WaitGroup // attempts' goroutines, copies of output, reach
}

// Run runs an agent to its end. It returns nil after Release from the AM or when ctx
// ends, and an error if it could not continue. The task has ended, unless the error says that
// something of it does not.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	home, err := newHome(cfg.WorkDir)
	if err != nil {
		return err
	}
	stores := store.NewOpener(cfg.Conf)
	a := &agent{
		cfg: cfg, log: cfg.Log, home: home, dir: &jobStore{uri: cfg.JobDirectory, stores: stores}, stores: stores,
		address: cfg.Master, arrivals: make(chan arrival, 1), number: -1,
		ended: make(chan *proto.Exited), lingers: make(chan struct{}, 1), commits: master.NewCommits(), execs: newExecs(),
	}
	defer a.dir.close()
	if cfg.OwnLog != "" {
		a.ownLog = a.copyLog()
		defer a.ownLog.Stop("")
	}
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	a.reach(working) // beside the box's start: both take a while
	if err := a.open(ctx); err != nil {
		cancel()
		a.wg.Wait()
		a.dropArrival()
		return err
	}
	defer a.stage.Close(a.box)
	return a.run(ctx, working, cancel)
}

// open starts the sandbox and the stage of the task.
func (a *agent) open(ctx context.Context) (err error) {
	a.box, err = sandbox.Start(ctx, sandbox.Options{
		Exe: a.cfg.Exe, NoNamespace: a.cfg.NoNamespace, UserNamespace: a.cfg.UserNamespace, NoSteering: a.cfg.NoSteering,
	})
	if err != nil {
		return err
	}
	if a.cfg.OwnProcess {
		err = nodump.Protect()
	}
	if err == nil {
		a.stage, err = stage.New(stage.Options{
			WorkDir: a.cfg.WorkDir, TmpDir: a.cfg.TmpDir, Stores: a.stores, Env: a.cfg.Env,
			Tokens: a.cfg.TokenFile, After: a.cfg.WarmAfter, Log: a.cfg.Log,
		}, a.box)
	}
	if err != nil {
		a.box.Close()
	}
	return err
}

// run is the agent's loop. working, which cancel ends, is the context of what it starts.
// reach has been called.
func (a *agent) run(ctx, working context.Context, cancel context.CancelFunc) (err error) {
	prepared := make(chan error, 1)
	preparing := false
	grace := time.Duration(0)
	defer func() {
		cancel()
		if preparing {
			<-prepared
		}
		err = errors.Join(err, a.end(grace, ctx.Err() != nil))
	}()
	var memory trimmer
	heartbeat := time.NewTicker(time.Second)
	defer heartbeat.Stop()
	look := time.NewTicker(lookPace)
	defer look.Stop()
	expiry := time.NewTimer(time.Hour)
	defer expiry.Stop()
	for {
		var in <-chan *proto.ToAgent
		if a.conn != nil {
			in = a.conn.Receive
		}
		if err := a.lease.Err(); err != nil {
			return fmt.Errorf("%w, so it was stopped; the last was at %s", err, a.address)
		}
		expiry.Reset(a.lease.Remaining())
		select {
		case <-ctx.Done():
			grace = endGrace
			return nil
		case <-a.box.Done():
			a.look() // that may be why
			return fmt.Errorf("the task's sandbox has ended: %w", a.box.Err())
		case r := <-a.arrivals:
			a.reaching = false
			if r.err != nil {
				return fmt.Errorf("%w; is that address reachable from this container's host?", r.err)
			}
			a.arrived(r)
		case m, open := <-in:
			if !open {
				err := a.conn.Err()
				a.disconnect()
				if a.task != nil && !a.lease.Limited() {
					return fmt.Errorf("the connection to the application master at %s broke, so the task was stopped: %w", a.address, err)
				}
				a.log.WithError(err).Warnf("the connection to the application master at %s broke; looking for it", a.address)
				a.reach(working)
				continue
			}
			switch m := m.Message.(type) {
			case *proto.ToAgent_HeartbeatReply:
				if sent := a.lease.Answered(m.HeartbeatReply.Sequence, m.HeartbeatReply.AmAttempt); sent != 0 {
					a.commits.Acknowledged(sent)
				}
			case *proto.ToAgent_Assign:
				switch {
				case a.task == nil:
					preparing = true
					a.task = newTask(a.cfg, a.stage, m.Assign, &a.lease)
					a.lease.Begin(time.Duration(m.Assign.LeaseMs) * time.Millisecond)
					if a.lease.Limited() {
						a.wg.Go(func() {
							a.lease.Watch(working, a.masterOptions(), runtime.Count(a.task.assign.Spec), a.task.checkpoints.Heartbeat)
						})
					}
					if m.Assign.HeartbeatIntervalMs > 0 {
						heartbeat.Reset(time.Duration(m.Assign.HeartbeatIntervalMs) * time.Millisecond)
					}
					go func() { prepared <- a.task.prepare(working, a.cfg, a.box, a.commits) }()
				case a.task.assign.Task != m.Assign.Task:
					return errors.New("the application master assigned a second task to this container")
				default: // it has missed what was said
					a.route(m.Assign.Routes)
					if a.ready {
						a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: a.task.prepared}})
					} else if a.failure != nil {
						a.sendFailure()
					}
				}
			case *proto.ToAgent_Prewarm:
				a.prewarm(working, m.Prewarm)
			case *proto.ToAgent_ChangePort:
				a.changePort(int(m.ChangePort.Port))
			case *proto.ToAgent_Start:
				a.start(m.Start)
			case *proto.ToAgent_Stop:
				if a.attempt != nil {
					a.attempt.stop(time.Duration(m.Stop.GraceMs)*time.Millisecond, m.Stop.DumpStacks)
					a.attempt.why = m.Stop
				}
			case *proto.ToAgent_EndLingering:
				if a.attempt != nil {
					a.attempt.linger.end()
					a.send(&proto.FromAgent{Message: &proto.FromAgent_LetEnd{LetEnd: &proto.LetEnd{Attempt: a.attempt.number}}})
				}
			case *proto.ToAgent_Exec:
				a.exec(working, m.Exec)
			case *proto.ToAgent_ExecTaken:
				a.execs.taken(m.ExecTaken.Id)
			case *proto.ToAgent_Routes:
				a.route(m.Routes)
			case *proto.ToAgent_Tokens:
				if err := a.cfg.NewTokens(m.Tokens.Credentials); err != nil {
					a.log.WithError(err).Error("cannot take the new tokens, so HDFS will be out of reach once the old ones end")
				}
			case *proto.ToAgent_Release:
				a.log.WithField("why", m.Release.Why).Info("told to end")
				grace = releaseGrace
				return nil
			}
		case err := <-prepared:
			preparing = false
			if err != nil {
				a.task.log.WithError(err).Error("cannot prepare for the task")
				a.failure = failure.Message(err)
				a.sendFailure()
				continue
			}
			a.ready = true
			a.task.begin(a.box)
			if claim := a.task.gpus; claim != nil {
				a.wg.Go(func() { a.usage.watchGPUs(working, claim) })
			}
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: a.task.prepared}})
		case e := <-a.ended:
			a.attempt, a.last = nil, e
			a.look()        // that may be why
			a.sendCommits() // before Exited: what it saved is known when its end is judged
			a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: e}})
		case <-a.lingers:
			a.said()
		case o := <-a.execs.output:
			if !o.of.abandoned.Load() {
				a.send(&proto.FromAgent{Message: &proto.FromAgent_ExecOutput{ExecOutput: o.message}})
			}
		case <-a.commits.Ready:
			a.sendCommits()
		case now := <-heartbeat.C:
			memory.trim(now)
			a.heartbeat()
		case <-look.C:
			a.look()
		case <-expiry.C: // looked at above
		}
	}
}

// look reports to the AM when a directory is no longer there that the task needs.
func (a *agent) look() {
	if !a.ready || a.failure != nil {
		return
	}
	detail := a.removed()
	if detail == "" {
		return
	}
	a.failure = &proto.AgentFailure{DirectoryRemoved: true, Detail: detail}
	a.log.Error(a.failure.Detail)
	a.sendFailure()
}

// removed says which directory is no longer there: the container's, or one that a checkpoint
// directory is mounted on; empty: none.
func (a *agent) removed() string {
	if a.home.gone() {
		return fmt.Sprintf("its container's directory on %s was removed, as a NodeManager does when it is restarted without its state", a.cfg.Host)
	}
	if err := a.box.MountRemoved(); err != nil {
		return fmt.Sprintf("on %s, %s", a.cfg.Host, err)
	}
	return ""
}

// route applies the addresses of tasks, now or once the task is prepared. r may be nil.
func (a *agent) route(r *proto.Routes) {
	switch {
	case r == nil || a.task == nil:
	case a.ready:
		a.task.route(r, a.box)
	default:
		a.task.late = append(a.task.late, r)
	}
}

// changePort has the next attempts of the task listen on another port.
func (a *agent) changePort(port int) {
	if !a.ready || a.failure != nil {
		return
	}
	if a.attempt != nil {
		a.log.Errorf("told to change the port of the task while attempt %d is running", a.attempt.number)
		return
	}
	if err := a.task.changePort(a.cfg, port); err != nil {
		a.task.log.WithError(err).Error("cannot take another port")
		a.failure = failure.Message(err)
		a.sendFailure()
		return
	}
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Prepared{Prepared: a.task.prepared}})
}

// prewarm prepares the container in the background for a task that it may be assigned. What
// fails is tried again with the task, and reported then.
func (a *agent) prewarm(ctx context.Context, r *proto.Prewarm) {
	if a.task != nil {
		return
	}
	a.wg.Go(func() {
		p, err := peers.New(r.Assign)
		if err == nil {
			err = a.stage.Furnish(ctx, r.Assign.Files, r.Assign.MemoryMb)
		}
		if err == nil {
			err = a.stage.Prewarm(p, r.Assign.PrewarmPlan, r.Imminent)
		}
		if err != nil {
			a.log.WithError(err).Warn("cannot get ready for a task to come")
		}
	})
}

// start runs an attempt. One that cannot be started is reported as exited.
func (a *agent) start(s *proto.Start) {
	log := a.log.WithField("attempt", s.Attempt)
	if a.task != nil {
		log = a.task.log.WithField("attempt", s.Attempt)
	}
	refuse := func(err error) {
		log.WithError(err).Error("cannot start the task")
		e := notRun(s.Attempt, err)
		if a.attempt == nil {
			a.number, a.generation, a.last = s.Attempt, s.Generation, e
		}
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: e}})
	}
	if !a.ready {
		refuse(errors.New("told to start a task before it was prepared"))
		return
	}
	if a.attempt != nil {
		refuse(fmt.Errorf("told to start while attempt %d is running", a.attempt.number))
		return
	}
	at, err := a.task.run(a.cfg, a.box, a.dir, s, log, &a.wg)
	if err != nil {
		refuse(err)
		return
	}
	a.attempt, a.number, a.generation, a.last = at, s.Attempt, s.Generation, nil
	log.WithField("pid", at.pid()).Info("started")
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Started{Started: &proto.Started{
		Attempt: s.Attempt, Pid: int32(at.pid()), AtUnixMs: at.started.UnixMilli(),
	}}})
	a.watchLingering(at)
	a.wg.Go(func() {
		e := at.wait()
		at.linger.close()
		a.ended <- e
	})
}

// end stops the task and releases all it held. Without grace, another container may be
// about to run the task: the task is killed at once and then fenced, in this order, so that
// it does not notice by errors. killed: the container is being ended from outside. The error
// says what of the task does not end, which is left to the end of the container.
func (a *agent) end(grace time.Duration, killed bool) error {
	if a.attempt != nil {
		a.attempt.stop(grace, false)
	}
	if a.task != nil && grace == 0 {
		a.task.checkpoints.Fence(errors.New("this agent has lost its application master, or its task's surroundings"))
	}
	var left error
	if a.attempt != nil {
		left = a.awaitEnd(killed)
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	limit := closeLimit
	if left != nil { // all else has been killed, too
		limit = endGrace
	}
	killing, stop := context.WithTimeout(ctx, limit)
	err := a.box.KillAll(killing)
	stop()
	if left == nil && err != nil {
		left = fmt.Errorf("something of the task does not end: %w", err)
	}
	if left != nil {
		a.log.Error(left)
		if a.task != nil {
			a.task.checkpoints.Fence(left)
		}
	}
	a.wg.Wait() // each is bounded
	a.dropArrival()
	if a.task != nil {
		a.task.close(ctx, a.box)
	}
	if a.ownLog != nil {
		a.ownLog.Stop("") // once all agents have left, the job ends, and so does this container
	}
	switch {
	case a.conn == nil:
	case left != nil: // to close it in order would say that nothing of the task is left
		a.conn.Abandon()
	default:
		a.conn.Close()
	}
	return left
}

// awaitEnd waits for the end of the running attempt, which was stopped, and reports it. An
// error says that it has not ended by when it must have.
func (a *agent) awaitEnd(killed bool) error {
	at := a.attempt
	a.attempt = nil
	late := time.AfterFunc(time.Until(at.killAt.Add(a.cfg.EndLimit)), func() { close(at.giveUp) })
	e := <-a.ended
	late.Stop()
	a.sendCommits()
	if e == nil {
		return fmt.Errorf("attempt %d has not ended within %s of SIGKILL: a process that waits in the kernel, as for a disk or a driver that does not answer, cannot be ended. It is left to the end of this container", at.number, a.cfg.EndLimit)
	}
	if !killed { // else another attempt would be started in the container
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: e}})
	}
	return nil
}
