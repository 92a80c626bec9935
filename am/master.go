// Package am is the application master: it gets containers from a Driver, keeps
// the agents in them and runs the job. What to do is decided by package core;
// this package carries it out.
//
// One goroutine, Master.Run, owns the core.Job and the driver. Agents' streams
// (hub), clients' calls (Board) and the driver have goroutines of their own and
// speak to it by channels. Run ends them all before it returns.
package am

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/proto"
	"holdfast/runtime"
)

// Config is what a master needs to know.
type Config struct {
	ID   string         // of the job
	Spec *proto.JobSpec // complete: see runtime.Complete
	Dir  store.Store    // the job's directory
	Keys jobtls.Keys    // the master's
	// OpenStore opens a checkpoint directory, to make it safe to start from.
	OpenStore func(ctx context.Context, uri string) (store.Store, error)
	// Attempt counts the application masters of the job, from 1. It is 0 where
	// none can take over from another; then no journal is kept.
	Attempt int
	// Predecessor is what was found of the attempt before, if there was one.
	Predecessor *Predecessor
	Place       *Place // which the master's end closes
	Limits      core.Limits
	Log         *logrus.Entry
}

// Master runs one job.
type Master struct {
	cfg      Config
	server   *grpc.Server
	board    *Board
	hub      *hub
	orders   *orders
	rehearse *rehearsals
	router   *router
	clerk    *clerk // nil: no journal is kept
	vigil    *vigil // nil: no other master can take over
	job      *core.Job
	agents   chan fromAgent
	ends     chan core.Event // what ends the job from outside
	stepped  chan struct{}   // there are steps of which core was not told
	keeper   *keeper
	sealer   *sealer
	progress *progress               // of the board, under its lock
	stages   *stages                 // of the loop
	secured  chan core.StorePrepared // one at a time, as core asks
	securing sync.WaitGroup
	launched map[string]bool // containers whose agents may live and are not shut out
	// firstSecured gets the result of securing the store while containers are
	// still being waited for.
	firstSecured chan core.StorePrepared
	securedFrom  time.Time       // when that was begun
	working      context.Context // of what serves the loop
	stopWorking  context.CancelFunc
	done         chan struct{}
}

// New makes a master.
func New(cfg Config) (*Master, error) {
	m := &Master{
		cfg:      cfg,
		agents:   make(chan fromAgent, 64),
		ends:     make(chan core.Event, 1),
		secured:  make(chan core.StorePrepared, 1),
		done:     make(chan struct{}),
		launched: map[string]bool{},
		progress: newProgress(),
		stepped:  make(chan struct{}, 1),
		stages:   newStages(),
		orders:   newOrders(cfg.ID, cfg.Spec),
	}
	m.rehearse = newRehearsals(m.orders)
	var tasks []core.Task
	roles := map[string]*proto.RoleSpec{}
	for _, r := range cfg.Spec.Roles {
		roles[r.Name] = r
	}
	for i, t := range runtime.Tasks(cfg.Spec) {
		tasks = append(tasks, core.Task{Name: t.Name, Role: roles[t.Role], Index: t.Index, Port: runtime.PeerPort(cfg.ID, i)})
	}
	limits := longerLease(cfg.Limits, len(tasks))
	limits.Start = time.Duration(cfg.Spec.StartLimitMs) * time.Millisecond
	if ms := cfg.Spec.StopGraceMs; ms != nil {
		if limits.Stop = time.Duration(*ms) * time.Millisecond; limits.Stop == 0 {
			limits.Stop = -1
		}
	}
	if limits.Stall = time.Duration(cfg.Spec.RestartStalledMs) * time.Millisecond; limits.Stall == 0 {
		limits.Stall = -1 // a stall is only told
	}
	if limits.Prewarm == 0 && runtime.Warm(cfg.Spec) {
		limits.Prewarm = rehearseLimit
	}
	limits.LivenessFile = cfg.Attempt > 0
	m.job = core.New(tasks, int(cfg.Spec.Restarts), int(cfg.Spec.Spares), limits)
	m.router = newRouter(m.job)
	status := &proto.JobStatus{
		Id: cfg.ID, Name: cfg.Spec.Name, User: cfg.Spec.User, Framework: cfg.Spec.Framework,
		StartedUnixMs: time.Now().UnixMilli(), Checkpoints: cfg.Spec.Checkpoints, AmHost: cfg.Place.host,
		Stages: []*proto.Stage{stage(stageMasterBegan, began)},
	}
	if p := cfg.Predecessor; p != nil {
		m.job.Resume(p.Journal)
		if p.Status != nil {
			status.StartedUnixMs, status.Events = p.Status.StartedUnixMs, p.Status.Events
			status.Incidents, status.Step, status.CompleteStep = p.Status.Incidents, p.Status.Step, p.Status.CompleteStep
		}
		for _, n := range p.Notes {
			status.Events = append(status.Events, &proto.JobEvent{AtUnixMs: time.Now().UnixMilli(), Kind: core.KindNote, Text: n})
		}
	}
	m.board = newBoard(status, m.Kill, m.job.Limits().Stop)
	m.board.show(m.job, nil, nil)
	m.keeper = newKeeper(cfg)
	m.sealer = newSealer(cfg, m.board)
	if p := cfg.Predecessor; p != nil {
		m.rehearse.resume(p.Imported)
		m.sealer.lookAtAll()
		for _, c := range p.Journal.Containers() {
			m.launched[c] = true
		}
	}
	// An agent says something each second, and its lease must not end before it
	// can have come back.
	m.hub = newHub(m.agents, m.beat, m.done, m.job.Limits().Lease/2, cfg.Attempt, cfg.Log)
	if cfg.Attempt > 0 {
		m.clerk = newClerk(cfg)
		m.vigil = newVigil(cfg, m.job.Limits().Lease)
	}
	server, err := newServer(cfg.Keys, cfg.Log, m.hub, m.board)
	if err != nil {
		return nil, err
	}
	m.server = server
	m.board.passed(stageListening)
	return m, nil
}

// beat shows what an agent tells each second; it may be called from any goroutine.
func (m *Master) beat(container string, b *proto.Heartbeat) {
	if m.board.beat(container, b, m.progress) {
		select {
		case m.stepped <- struct{}{}:
		default: // it is about to look
		}
	}
}

// Board shows the job's state.
func (m *Master) Board() *Board { return m.board }

// SetTrackingURL says where the job's page is.
func (m *Master) SetTrackingURL(url string) {
	m.board.change(func(s *proto.JobStatus) { s.TrackingUrl = url })
}

// NewTokens hands agents a credentials file, whose tokens take the place of
// those that they have. It may be called from any goroutine.
func (m *Master) NewTokens(credentials []byte) {
	m.hub.announceTokens(&proto.ToAgent{Message: &proto.ToAgent_Tokens{Tokens: &proto.Tokens{Credentials: credentials}}})
}

// Kill ends the job; it may be called from any goroutine, and more than once.
func (m *Master) Kill(why string) { m.endBy(core.Kill{Why: why}) }

// GiveUp ends the job, which has failed because the cluster will not serve it
// any longer; it may be called from any goroutine.
func (m *Master) GiveUp(why string) { m.endBy(core.Broken{Why: why}) }

func (m *Master) endBy(e core.Event) {
	select {
	case m.ends <- e:
	default: // one is enough
	}
}

// ErrLeft is returned by Run for a job that goes on without this master.
var ErrLeft = errors.New("the job is left to another application master")

// Run runs the job to its end and returns its final state. The end of ctx
// kills the job; but where another master can take over, it is left as it is,
// as it is when the cluster has given this attempt up: ErrLeft.
func (m *Master) Run(ctx context.Context, driver Driver) (*proto.JobStatus, error) {
	m.board.passed(stageRegistered)
	var background sync.WaitGroup
	background.Go(func() { _ = m.server.Serve(m.cfg.Place.listener) }) // ends by Stop
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { m.board.keep(keeping, m.cfg.Dir, m.cfg.Log) })
	m.working, m.stopWorking = context.WithCancel(context.WithoutCancel(ctx))
	defer m.stopWorking()
	if m.clerk != nil {
		background.Go(func() { m.clerk.run(m.working) })
		background.Go(func() { m.vigil.run(m.working) })
	}
	background.Go(func() { Trim(m.working) })
	background.Go(func() { m.keeper.beat(m.working) })
	sealed := make(chan struct{})
	go func() {
		defer close(sealed)
		m.sealer.run(m.working, m.done)
	}()
	if m.cfg.Predecessor == nil { // else its tasks run, and are not about to start
		first := make(chan core.StorePrepared, 1)
		m.firstSecured, m.securedFrom = first, time.Now()
		m.securing.Go(func() { first <- m.keeper.secure(m.working, true, nil) })
	}

	finish := m.loop(ctx, driver)

	close(m.done)
	if finish == nil {
		stopKeeping()
		m.stopWorking()
		m.server.Stop() // agents look for the next master
		return nil, ErrLeft
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	select {
	case <-sealed:
	case <-time.After(sealLimit):
	}
	m.stopWorking()
	<-sealed
	m.securing.Wait()
	leaving, cancelLeaving := context.WithTimeout(ending, leaveLimit)
	m.keeper.leave(leaving, finish.State == proto.JobState_JOB_STATE_SUCCEEDED)
	cancelLeaving()
	stopKeeping()
	keeper.Wait() // an older state must not be written over the last one
	m.board.close(m.job)
	final, _ := m.board.Snapshot()
	save(ending, m.cfg.Dir, final, m.cfg.Log)
	if m.vigil != nil {
		if err := m.cfg.Place.retire(ending, m.cfg.Dir, m.cfg.Attempt); err != nil {
			m.cfg.Log.WithError(err).Warn("agents that cannot be reached are not told that the job has ended")
		}
	}
	err := driver.Finish(ending, Outcome{
		Succeeded: finish.State == proto.JobState_JOB_STATE_SUCCEEDED,
		Killed:    finish.State == proto.JobState_JOB_STATE_KILLED,
		Why:       finish.Why,
	})
	m.lingering()
	m.server.Stop()
	background.Wait()
	if err != nil {
		return final, fmt.Errorf("telling the cluster that job %s ended: %w", m.cfg.ID, err)
	}
	return final, nil
}

// lingering gives those who watch the time to receive the final state.
func (m *Master) lingering() {
	stopped := make(chan struct{})
	go func() {
		m.server.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(time.Second):
	}
}

// driverFirst is how many events of the driver are taken for one of the agents',
// where there are many of both.
const driverFirst = 8

// loop feeds events to core and carries its actions out, until core says
// Finish, or (nil) the job is to be left to another master.
func (m *Master) loop(ctx context.Context, driver Driver) *core.Finish {
	act := actor{
		m: m, driver: driver, due: time.NewTimer(time.Hour),
		assigned: map[string]*proto.Assign{}, starting: map[string]bool{},
	}
	defer act.due.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	events, inARow := driver.Events(), 0
	ended := ctx.Done()
	var next core.Event = core.Begin{}
	if m.cfg.Predecessor != nil {
		kept := driver.Kept()
		for c := range kept {
			m.launched[c] = true
		}
		next = core.Recovered{Attempt: m.cfg.Attempt, Containers: kept}
	}
	var heir chan struct{} // closed once there is another master
	var watched chan unbroken
	if m.clerk != nil {
		heir, watched = m.clerk.heir, m.vigil.news
	}
	for {
		if next != nil {
			if f := act.step(next); f != nil {
				return f
			}
		}
		next = nil
		if at, ok := m.job.Deadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Reset(time.Hour)
		}
		// What many agents say is not to hold up the asks for containers that have ended.
		agents, secured := m.agents, m.secured
		if inARow++; inARow < driverFirst && len(events) > 0 {
			agents, secured = nil, nil
		} else {
			inARow = 0
		}
		select {
		case e, ok := <-events:
			if !ok {
				events = nil
				next = core.Broken{Why: "the connection to the cluster has ended"}
				break
			}
			if b, is := e.(Broken); is && b.Superseded {
				m.cfg.Log.WithError(b.Err).Warn("leaving the job")
				return nil
			}
			next = m.fromDriver(e)
		case a := <-agents:
			next = m.fromAgent(a)
		case next = <-secured:
		case <-m.stepped:
			next = m.board.stepped(m.progress)
		case <-m.sealer.news:
			next = core.CheckpointSealed{}
		case <-heir:
			return nil
		case u := <-watched:
			next = core.LivenessConfirmed{Since: u.since, Until: u.until}
		case next = <-m.ends:
		case <-ended:
			ended = nil
			if state, _ := m.job.State(); state == proto.JobState_JOB_STATE_STOPPING {
				break // it does, and another master could do no better
			}
			if m.cfg.Attempt > 0 {
				m.cfg.Log.Warn("told to end; leaving the job")
				return nil
			}
			next = core.Kill{Why: "the application master was told to end"}
		case <-act.due.C:
			act.flush()
		case <-timer.C:
			next = core.Tick{}
		}
	}
}

func (m *Master) rehearseSpares() {
	spares := m.rehearse.spares(m.job)
	if len(spares) == 0 {
		return
	}
	places := placesOf(m.job)
	for container, rehearse := range spares {
		rehearse.Assign.Routes = places
		m.hub.send(container, &proto.ToAgent{Message: &proto.ToAgent_Prewarm{Prewarm: rehearse}})
	}
}

// give has orders given, by the clerk where a journal is kept.
func (m *Master) give(e errand) {
	if m.clerk == nil {
		for _, order := range e.orders {
			order()
		}
		return
	}
	e.journal = journalFile{Version: journalVersion, Journal: m.job.Journal(), Imported: m.rehearse.journal()}
	if e.journal.Outcome != proto.JobState_JOB_STATE_UNSPECIFIED {
		e.binding = false // a store that does not answer must not keep the job from ending
		m.clerk.hurry()
	}
	m.clerk.post(e)
}

// lease is how long agents let their tasks run without a master; 0, not at all,
// where no other master can take over.
func (m *Master) lease() time.Duration {
	if m.cfg.Attempt == 0 {
		return 0
	}
	return m.job.Limits().Lease
}

const (
	beatLeast   = time.Second
	beatSpacing = 400 * time.Microsecond // between those of two agents
	// beatsInLease is how many beats an agent says within its lease at least:
	// half a lease without an answer ends its stream.
	beatsInLease = 5
)

// beatEvery is how often an agent says that it lives. It is seldomer in a large
// job, whose master has much to hear, but never so that the lease suffers.
func (m *Master) beatEvery() time.Duration {
	wanted := time.Duration(m.job.Size()) * beatSpacing
	return max(beatLeast, min(wanted, m.job.Limits().Lease/beatsInLease))
}

// longerLease is that of a job with so many tasks that their beats would be too
// many for the ordinary one, if it is to be longer: the loss of an agent that says
// nothing is noticed so much later.
func longerLease(limits core.Limits, tasks int) core.Limits {
	if wanted := time.Duration(tasks) * beatSpacing * beatsInLease; limits.Lease == 0 && wanted > core.DefaultLease {
		limits.Lease = wanted
	}
	return limits
}

// leaveLimit bounds what is done in checkpoint directories at the job's end: the
// cluster must be told of it even where they do not answer.
const leaveLimit = 30 * time.Second

// sealLimit bounds the sealing of the last checkpoints at the job's end.
const sealLimit = 30 * time.Second

// secureFresh is for how long what Run has begun is good enough: others may
// write to the directory while containers are waited for.
const secureFresh = time.Minute

// secure makes the store safe in the background; loop hears of it. The first
// time that was begun by Run already.
func (m *Master) secure(allDown bool) {
	first := m.firstSecured
	m.firstSecured = nil
	if time.Since(m.securedFrom) > secureFresh {
		first = nil
	}
	gone := m.gone()
	m.securing.Go(func() {
		var before core.StorePrepared
		if first != nil {
			before = <-first
		}
		if first == nil || len(gone) > 0 {
			s := m.keeper.secure(m.working, allDown, gone)
			before.Notes = append(before.Notes, s.Notes...)
		}
		m.secured <- before
	})
}

// gone are the containers that no task has any longer, each told once.
func (m *Master) gone() []string {
	left := map[string]bool{}
	for c := range m.launched {
		if _, hosted := m.job.Hosted(c); !hosted {
			left[c] = true
		}
	}
	if len(left) == 0 {
		return nil
	}
	for _, c := range m.job.Containers() {
		delete(left, c)
	}
	for c := range left {
		delete(m.launched, c)
	}
	return slices.Sorted(maps.Keys(left))
}

// ReadSpec reads the spec from a job's directory.
func ReadSpec(ctx context.Context, dir store.Store) (*proto.JobSpec, error) {
	text, err := store.ReadFile(ctx, dir, proto.SpecFile)
	if err != nil {
		return nil, fmt.Errorf("reading the job's spec: %w", err)
	}
	spec := &proto.JobSpec{}
	if err := protojson.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("reading the job's spec %s/%s: %w", dir.URI(), proto.SpecFile, err)
	}
	return spec, nil
}
