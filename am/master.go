// Package am is the application master. It gets containers from a Driver, keeps an agent
// in each, and runs the job in them. Package core decides what to do; this package feeds
// it events and carries its actions out.
//
// # Goroutines
//
// The event loop, in Master.Run, owns the core.Job and is the only caller of the driver.
// Agents' streams (am/agents), clients' calls (am/status), the journal and the liveness
// file (am/recovery), the preparation and the sealing of checkpoints (am/checkpoint) and
// the driver have goroutines of their own, which speak to the loop by channels. Run starts
// all but the driver's, and ends them before it returns.
package am

import (
	"time"

	"google.golang.org/grpc"

	"holdfast/am/agents"
	"holdfast/am/checkpoint"
	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/notify"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/am/status"
	"holdfast/am/status/samples"
	"holdfast/proto"
	"holdfast/runtime"
)

// Master runs one job.
type Master struct {
	cfg  Config
	grpc *grpc.Server

	// What belongs to the event loop.
	job         *core.Job
	stages      *status.Stages
	messages    *agents.Messages
	prewarmer   *agents.Prewarmer
	router      *agents.Router
	preparation *preparation

	// What may be called from any goroutine.
	agents   *agents.Server
	status   *status.Store
	sealer   *checkpoint.Sealer
	begins   bool                    // the job's tasks have not been started yet, by no master
	journal  *recovery.JournalWriter // nil: no other master can take over
	liveness *recovery.LivenessFile  // the same
	notifier *notify.Notifier        // nil: nobody is notified

	received chan agents.Received
	ends     chan event.Event // what ends the job from outside
	requests chan request
	stepsDue chan struct{} // capacity 1: core is to be told of steps
	done     chan struct{} // closed when the event loop has ended

	endLimits endLimits // the default, or a test's
}

// New returns a master that Run starts. Agents and clients can connect from then on.
func New(cfg Config) (*Master, error) {
	tasks := coreTasks(cfg)
	messages := agents.NewMessages(cfg.ID, cfg.Spec)
	m := &Master{
		cfg:         cfg,
		job:         core.New(tasks, int(cfg.Spec.Restarts), int(cfg.Spec.Spares), cfg.limits(len(tasks))),
		stages:      status.NewStages(),
		messages:    messages,
		preparation: newPreparation(checkpoint.NewPreparer(cfg.checkpoint())),
		received:    make(chan agents.Received, 64),
		ends:        make(chan event.Event, 1),
		requests:    make(chan request),
		stepsDue:    make(chan struct{}, 1),
		done:        make(chan struct{}),
		endLimits:   defaultEndLimits,
	}
	m.router = agents.NewRouter(m.job)
	if p := cfg.Predecessor; p != nil {
		m.job.Resume(p.Journal)
		for _, c := range p.Journal.Containers() {
			m.preparation.launched[c] = true
		}
		m.prewarmer = agents.NewPrewarmer(messages, p.ImportProfiles)
		if p.Status != nil {
			m.stages.TakeOver(p.Status)
		}
	} else {
		m.prewarmer = agents.NewPrewarmer(messages, nil)
	}
	begun := initialStatus(cfg)
	m.status = status.New(begun, newSamples(cfg, time.UnixMilli(begun.StartedUnixMs)), m.Kill, m.job.Limits().Stop)
	m.status.CountEvery(m.job.CountInterval())
	m.status.Apply(m.job, nil, m.stages.ByTask())
	m.notifier = newNotifier(cfg, m.status.Note)
	m.sealer = checkpoint.NewSealer(cfg.checkpoint(), m.status)
	if m.begins = cfg.Predecessor == nil; !m.begins {
		m.sealer.ScanAll()
	}
	lease := m.job.Limits().Lease
	m.agents = agents.NewServer(agents.Config{
		Attempt: cfg.Attempt, Timeout: proto.StreamTimeout(lease), Received: m.received, Done: m.done, Heartbeat: m.heartbeat, Log: cfg.Log,
	})
	if cfg.Attempt > 0 {
		m.journal = recovery.NewJournalWriter(cfg.Dir, cfg.Attempt, cfg.Log)
		m.liveness = recovery.NewLivenessFile(cfg.Dir, lease, cfg.Log)
	}
	var err error
	if m.grpc, err = server.New(cfg.Keys, cfg.Log, m.agents, jobService{m.status, m.agents, m.ask}); err != nil {
		return nil, err
	}
	m.status.PassStage(status.StageListening)
	return m, nil
}

func coreTasks(cfg Config) []core.Task {
	roles := map[string]*proto.RoleSpec{}
	for _, r := range cfg.Spec.Roles {
		roles[r.Name] = r
	}
	var tasks []core.Task
	for i, t := range runtime.Tasks(cfg.Spec) {
		tasks = append(tasks, core.Task{Name: t.Name, Role: roles[t.Role], Index: t.Index, Port: runtime.PeerPort(cfg.ID, i)})
	}
	return tasks
}

// initialStatus returns the job's status as it is when the master starts, with what its
// predecessor saved.
func initialStatus(cfg Config) *proto.JobStatus {
	now := time.Now().UnixMilli()
	s := &proto.JobStatus{
		Id: cfg.ID, Name: cfg.Spec.Name, User: cfg.Spec.User, Framework: cfg.Spec.Framework,
		StartedUnixMs: now, Checkpoints: cfg.Spec.Checkpoints, AmHost: cfg.Listener.Host(), TotalSteps: int64(cfg.Spec.TotalSteps),
		Stages: []*proto.Stage{status.NewStage(status.StageProcess, status.ProcessStarted)},
	}
	p := cfg.Predecessor
	if p == nil {
		return s
	}
	if p.Status != nil {
		status.TakeOver(s, p.Status)
	}
	for _, n := range p.Notes {
		s.Events = append(s.Events, &proto.JobEvent{AtUnixMs: now, Kind: action.KindNote, Text: n})
	}
	return s
}

// newSamples returns the job's samples, with what its predecessor saved.
func newSamples(cfg Config, start time.Time) *samples.Samples {
	var tasks []samples.Task
	for _, t := range runtime.Tasks(cfg.Spec) {
		tasks = append(tasks, samples.Task{Name: t.Name, Role: t.Role})
	}
	s := samples.New(cfg.ID, start, tasks)
	if p := cfg.Predecessor; p != nil {
		s.Restore(p.Samples)
	}
	return s
}

// heartbeat takes in an agent's heartbeat, on the goroutine of its stream.
func (m *Master) heartbeat(container string, h *proto.Heartbeat) {
	if m.status.Heartbeat(container, h) {
		select {
		case m.stepsDue <- struct{}{}:
		default: // the loop is about to look
		}
	}
}

// Status returns the job's status. It may be called from any goroutine.
func (m *Master) Status() *status.Store { return m.status }

// SetTrackingURL sets the URL of the job's page. It may be called from any goroutine.
func (m *Master) SetTrackingURL(url string) {
	m.status.Update(func(s *proto.JobStatus) { s.TrackingUrl = url })
}

// SetQueue sets the queue that the job is in. It may be called from any goroutine.
func (m *Master) SetQueue(queue string) {
	m.status.Update(func(s *proto.JobStatus) { s.Queue = queue })
}

// SetLogsURL sets the URL of the NodeManager's page with the logs of this application master's
// container. It may be called from any goroutine.
func (m *Master) SetLogsURL(url string) {
	m.status.Update(func(s *proto.JobStatus) { s.AmLogsUrl = url })
}

// NewTokens sends a credentials file to all agents, whose tokens replace those that they
// have. It may be called from any goroutine.
func (m *Master) NewTokens(credentials []byte) {
	m.agents.SetTokens(&proto.ToAgent{Message: &proto.ToAgent_Tokens{Tokens: &proto.Tokens{Credentials: credentials}}})
}

// Kill ends the job as killed. It may be called from any goroutine, and more than once.
func (m *Master) Kill(why string) { m.end(event.Kill{Why: why}) }

// GiveUp ends the job as failed, since the cluster does not serve it any longer. It may be
// called from any goroutine.
func (m *Master) GiveUp(why string) { m.end(event.Broken{Why: why}) }

func (m *Master) end(e event.Event) {
	select {
	case m.ends <- e:
	default: // one is enough
	}
}
