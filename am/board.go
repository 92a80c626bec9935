package am

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/am/core"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// watchPace is the least time between two states sent to one watcher, and
// savePace that between two writings of status.json. Where a state is so large
// that making it ready takes longer than a shareLimit-th of that time, it is made
// less often.
const (
	watchPace  = 100 * time.Millisecond
	savePace   = time.Second
	shareLimit = 30
	// saveSlowest bounds that for status.json, from which another master learns
	// where the journal is lost.
	saveSlowest = 5 * time.Second
	// What agents tell with each beat is written less often.
	beatShareLimit  = 1000
	beatSaveSlowest = 30 * time.Second
)

// timelineLimit bounds the story that is kept; the middle of a longer one is dropped.
const timelineLimit = 2000

// Board shows a job's state: to clients by gRPC, to the tracking page, and in
// status.json for those who come after the AM's end. All methods may be
// called from many goroutines.
type Board struct {
	proto.UnimplementedJobServiceServer
	kill func(why string)
	// stopGrace is what tasks get between SIGTERM and SIGKILL at the job's end.
	stopGrace time.Duration

	mu      sync.Mutex
	status  *proto.JobStatus
	changed chan struct{}                // closed at the next change; nil: nobody waits for it
	news    chan struct{}                // the same, of changes that are no beats
	hosted  map[string]*proto.TaskStatus // by container
	whole   bool                         // every task that is to run does
}

func newBoard(status *proto.JobStatus, kill func(string), stopGrace time.Duration) *Board {
	return &Board{status: status, kill: kill, stopGrace: stopGrace}
}

// passed shows a stage of the master's own start.
func (b *Board) passed(name string) {
	at := time.Now()
	b.change(func(s *proto.JobStatus) { s.Stages = append(s.Stages, stage(name, at)) })
}

// change lets f edit the state and tells all who watch.
func (b *Board) change(f func(*proto.JobStatus)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.status)
	tell(&b.changed)
	tell(&b.news)
}

// tell closes a channel for those who wait.
func tell(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

// wait gives such a channel.
func wait(waiting *chan struct{}) <-chan struct{} {
	if *waiting == nil {
		*waiting = make(chan struct{})
	}
	return *waiting
}

// Snapshot is the present state, and a channel that is closed at the next change.
func (b *Board) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	s, changed, _ := b.look()
	return s, changed
}

// look is Snapshot, and a channel that is closed at the next change that is more
// than a beat.
func (b *Board) look() (s *proto.JobStatus, changed, news <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s = pb.Clone(b.status).(*proto.JobStatus)
	s.AmRssBytes = residentBytes()
	return s, wait(&b.changed), wait(&b.news)
}

// Status implements proto.JobsServer.
func (b *Board) Status(context.Context, *proto.StatusRequest) (*proto.JobStatus, error) {
	s, _ := b.Snapshot()
	return s, nil
}

// Watch implements proto.JobsServer.
func (b *Board) Watch(_ *proto.StatusRequest, stream proto.JobService_WatchServer) error {
	pace := time.NewTicker(watchPace)
	defer pace.Stop()
	for {
		s, changed := b.Snapshot()
		if err := stream.Send(s); err != nil {
			return err
		}
		if s.State.Done() {
			return nil
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-changed:
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-pace.C:
		}
	}
}

// Kill implements proto.JobsServer.
func (b *Board) Kill(_ context.Context, r *proto.KillRequest) (*proto.KillResponse, error) {
	why := r.Why
	if why == "" {
		why = "killed by a user"
	}
	b.kill(why)
	return &proto.KillResponse{StopGraceMs: b.stopGrace.Milliseconds()}, nil
}

// show takes over what core knows, the lines that it recorded, and the stages
// that tasks have passed.
func (b *Board) show(job *core.Job, moments []*proto.JobEvent, stages map[string][]*proto.Stage) {
	b.change(func(s *proto.JobStatus) {
		recordIncidents(s, job, moments)
		s.State, s.Why = job.State()
		if s.State.Done() {
			s.State = proto.JobState_JOB_STATE_STOPPING // until close
		}
		s.Generation = int32(job.Generation())
		for len(s.Tasks) < job.Size() {
			s.Tasks = append(s.Tasks, &proto.TaskStatus{})
		}
		b.hosted = make(map[string]*proto.TaskStatus, len(s.Tasks))
		b.whole = s.State == proto.JobState_JOB_STATE_RUNNING
		for i, t := range job.Tasks() {
			showTask(s.Tasks[i], t)
			s.Tasks[i].Stages = stages[t.Name]
			b.hosted[t.Container] = s.Tasks[i]
			b.whole = b.whole && t.State != proto.TaskState_TASK_STATE_WAITING && t.State != proto.TaskState_TASK_STATE_RESTARTING
		}
		s.Spares = spareStatus(job.Spares(), s.Spares)
		s.Events = append(s.Events, moments...)
		if len(s.Events) > timelineLimit {
			s.Events = append(s.Events[:timelineLimit/4], s.Events[len(s.Events)-timelineLimit/2:]...)
		}
	})
}

// beat shows what an agent tells each second. It returns whether core is to be told
// of steps.
func (b *Board) beat(container string, e *proto.Heartbeat, p *progress) (due bool) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	defer tell(&b.changed)
	s := b.status
	for _, k := range s.Spares {
		if k.Container == container {
			k.AgentRssBytes, k.WarmRssBytes, k.WarmStatus = e.AgentRssBytes, e.WarmRssBytes, e.WarmStatus
		}
	}
	if !b.whole {
		p.interrupted()
	}
	if t := b.hosted[container]; t != nil {
		t.RssBytes, t.AgentRssBytes = e.RssBytes, e.AgentRssBytes
		t.WarmRssBytes, t.WarmStatus = e.WarmRssBytes, e.WarmStatus
		if p.heard(now, t.Task, e.Step) {
			t.Step = e.Step
			recordStep(s, e.Step, now)
			s.StepsPerSecond = p.rate
		}
	}
	return p.due(now)
}

// saving takes in that a task has saved something.
func (b *Board) saving(p *progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.saving = true
}

// stepped gives what core is to be told of steps.
func (b *Board) stepped(p *progress) core.StepsReported {
	b.mu.Lock()
	defer b.mu.Unlock()
	return p.tell(time.Now())
}

// sealed shows which the newest complete checkpoint is.
func (b *Board) sealed(step int64) {
	b.change(func(s *proto.JobStatus) { s.CompleteStep = step })
}

// lastRecovery tells of the last task that came back; "" if none had to.
func (b *Board) lastRecovery() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := len(b.status.Events) - 1; i >= 0; i-- {
		if m := b.status.Events[i]; m.Kind == core.KindBack {
			return fmt.Sprintf("%s came back (%s)", m.Task, m.Text)
		}
	}
	return ""
}

// close shows the final state, once nothing is left to be done.
func (b *Board) close(job *core.Job) {
	b.change(func(s *proto.JobStatus) {
		s.State, s.Why = job.State()
		s.EndedUnixMs = time.Now().UnixMilli()
	})
}

// showTask takes over what core knows of a task; what its agent tells stays.
func showTask(s *proto.TaskStatus, t core.Task) {
	s.Task, s.Role, s.Index, s.State = t.Name, t.Role.Name, int32(t.Index), t.State
	s.Attempt, s.Failures, s.Container, s.Node = int32(t.Attempt), int32(t.Failures()), t.Container, t.Node
	s.Pid, s.Why, s.Tail, s.AgentPid, s.Port = int32(t.PID), t.Why, t.Tail, int32(t.AgentPID), int32(t.Port)
	s.RealAddress = ""
	if t.RealPort != 0 {
		s.RealAddress = t.Host + ":" + strconv.Itoa(t.RealPort)
	}
}

// keep writes status.json at each change until ctx ends, and less often where
// all that changes is told by beats.
func (b *Board) keep(ctx context.Context, dir store.Store, log *logrus.Entry) {
	for {
		s, changed, news := b.look()
		took := save(ctx, dir, s, log)
		pause := max(savePace, min(shareLimit*took, saveSlowest))
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-time.After(min(beatShareLimit*took, beatSaveSlowest) - pause):
		}
	}
}

// save writes status.json and returns how long it took to make its text.
func save(ctx context.Context, dir store.Store, s *proto.JobStatus, log *logrus.Entry) time.Duration {
	began := time.Now()
	text, err := protojson.MarshalOptions{Multiline: true}.Marshal(s)
	took := time.Since(began)
	if err == nil {
		err = store.WriteFile(ctx, dir, proto.StatusFile, text, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		log.WithError(err).Warnf("cannot write %s; the job goes on, `status` after its end will be out of date", path.Join(dir.URI(), proto.StatusFile))
	}
	return took
}
