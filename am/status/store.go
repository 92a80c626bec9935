// Package status holds what others see of a job: its state, the event log, incidents
// and what they cost, the rate of steps, and when each task passed the stages of its
// start. Clients read it by gRPC, the tracking page from memory, and anyone after the
// master's end from status.json.
//
//   - The event log is the list of things that happened to the job, for people.
//   - An incident is the loss of a task together with its recovery.
//   - A stage is a point that a start or recovery passes, from the loss of a task to the
//     start of its next attempt.
package status

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/nodes"
	"holdfast/am/status/samples"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// maxEvents bounds the event log; the middle of a longer one is dropped.
const maxEvents = 2000

// maxSpareLogs is how many URLs of logs are kept of containers that host no task.
const maxSpareLogs = 100

// Store holds a job's status and implements proto.JobServiceServer. Its methods may be
// called concurrently.
type Store struct {
	proto.UnimplementedJobServiceServer
	kill func(why string)
	// stopGrace is the time between SIGTERM and SIGKILL at the job's end.
	stopGrace time.Duration

	mu       sync.Mutex
	status   *proto.JobStatus
	progress *progress
	totals   *Totals
	samples  *samples.Samples             // guarded by itself
	changed  chan struct{}                // closed at the next change; nil: nobody waits for it
	news     chan struct{}                // the same, for changes other than by heartbeats
	hosted   map[string]*proto.TaskStatus // by container
	complete bool                         // every task that is to run does
	// inherited are the tasks of whose last loss the predecessor knew, and core does not.
	inherited map[string]bool

	totalGiven bool // the number of all steps, by the job's user
	cadence    cadence
	logs       map[string]string // URLs of NodeManagers' pages, by container
	logged     []string          // the containers in logs, the oldest first
	began      time.Time
}

// New returns a store that begins with status and samples, which it owns from then on. A number
// of all steps in status is that of the job's user, and stays. kill
// is called when a client asks to kill the job, and must not block.
func New(status *proto.JobStatus, samples *samples.Samples, kill func(why string), stopGrace time.Duration) *Store {
	s := &Store{
		status: status, progress: newProgress(), totals: newTotals(status.Incidents), samples: samples, inherited: map[string]bool{},
		kill: kill, stopGrace: stopGrace, totalGiven: status.TotalSteps != 0, began: time.Now(),
		cadence: cadenceOf(status.CompleteStep, status.CompleteStepAtUnixMs, status.NextCheckpointUnixMs),
	}
	for _, t := range status.Tasks {
		s.inherited[t.Task] = true
	}
	return s
}

// Update calls f to edit the status, under the store's lock, and notifies watchers.
func (s *Store) Update(f func(*proto.JobStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.status)
	if e := s.status.Events; len(e) > maxEvents { // whoever has added them
		s.status.Events = append(e[:maxEvents/4], e[len(e)-maxEvents/2:]...)
	}
	notify(&s.changed)
	notify(&s.news)
}

// PassStage records that the master has passed a stage of its own start.
func (s *Store) PassStage(name string) {
	at := time.Now()
	s.Update(func(status *proto.JobStatus) { status.Stages = append(status.Stages, NewStage(name, at)) })
}

// Note adds a note to the event log, of what core does not know.
func (s *Store) Note(text string) {
	at := time.Now().UnixMilli()
	s.Update(func(status *proto.JobStatus) {
		status.Events = append(status.Events, &proto.JobEvent{AtUnixMs: at, Kind: action.KindNote, Text: proto.Text(text)})
	})
}

// notify closes a channel that subscribe has returned, if there is one.
func notify(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

// subscribe returns a channel that is closed by the next notify.
func subscribe(waiting *chan struct{}) <-chan struct{} {
	if *waiting == nil {
		*waiting = make(chan struct{})
	}
	return *waiting
}

// Snapshot returns a copy of the present status, and a channel that is closed at the
// next change.
func (s *Store) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	status, changed, _ := s.snapshot()
	return status, changed
}

// snapshot is Snapshot with another channel, which is closed at the next change other
// than by a heartbeat.
func (s *Store) snapshot() (status *proto.JobStatus, changed, news <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status = pb.Clone(s.status).(*proto.JobStatus)
	if status.State == proto.JobState_JOB_STATE_RUNNING || status.State == proto.JobState_JOB_STATE_WAITING {
		status.StepsPerSecond *= s.progress.fall(time.Now())
	}
	status.AmRssBytes, _ = proc.RSS(os.Getpid())
	return status, subscribe(&s.changed), subscribe(&s.news)
}

// Apply updates the status from core's state, appends events to the log, and sets the
// stages of each task.
func (s *Store) Apply(job *core.Job, events []*proto.JobEvent, stages map[string][]*proto.Stage) {
	s.Update(func(status *proto.JobStatus) {
		recordIncidents(status, s.totals, job, events)
		status.State, status.Why = job.State()
		if status.State.Done() {
			status.State = proto.JobState_JOB_STATE_STOPPING // until Finish
		}
		status.Generation = int32(job.Generation())
		for len(status.Tasks) < job.Size() {
			status.Tasks = append(status.Tasks, &proto.TaskStatus{})
		}
		s.hosted = make(map[string]*proto.TaskStatus, len(status.Tasks))
		s.complete = status.State == proto.JobState_JOB_STATE_RUNNING
		for i, t := range job.Tasks() {
			if status.Tasks[i].Attempt != int32(t.Attempt) {
				s.progress.begin(t.Name)
			}
			if t.Why != "" || t.Parked {
				delete(s.inherited, t.Name)
			}
			updateTask(status.Tasks[i], t, s.inherited[t.Name])
			status.Tasks[i].Stages, status.Tasks[i].ContainerLogsUrl = stages[t.Name], s.logs[t.Container]
			s.hosted[t.Container] = status.Tasks[i]
			s.complete = s.complete && (t.Parked || t.State != proto.TaskState_TASK_STATE_WAITING) && t.State != proto.TaskState_TASK_STATE_RESTARTING
		}
		tellDifferences(status, events)
		recordGeneration(status, job, time.Now())
		status.Spares = spareStatus(job.Spares(), status.Spares)
		status.AvoidedNodes = avoidedNodes(job.AvoidedNodes())
		status.Events = append(status.Events, events...)
	})
}

// UpdateSpeeds updates how fast tasks are from core's state, where that is all that has changed.
func (s *Store) UpdateSpeeds(job *core.Job) {
	s.Update(func(status *proto.JobStatus) {
		for i, t := range job.Tasks() {
			if i < len(status.Tasks) {
				updateSpeed(status.Tasks[i], t)
			}
		}
		tellDifferences(status, nil)
	})
}

// Finish sets the final state, once nothing is left to be done.
func (s *Store) Finish(job *core.Job) {
	s.Update(func(status *proto.JobStatus) {
		status.State, status.Why = job.State()
		status.EndedUnixMs = time.Now().UnixMilli()
		endGeneration(status, status.EndedUnixMs)
	})
}

// Heartbeat takes in what an agent reports about itself and its task. It reports whether
// core is now to be told the steps, which TakeSteps returns.
func (s *Store) Heartbeat(container string, h *proto.Heartbeat) (stepsDue bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	defer notify(&s.changed)
	for _, k := range s.status.Spares {
		if k.Container == container {
			k.AgentRssBytes, k.WarmRssBytes, k.WarmStatus = h.AgentRssBytes, h.WarmRssBytes, h.WarmStatus
		}
	}
	if !s.complete {
		s.progress.interrupt()
	}
	if t := s.hosted[container]; t != nil {
		t.RssBytes, t.AgentRssBytes = h.RssBytes, h.AgentRssBytes
		t.WarmRssBytes, t.WarmStatus = h.WarmRssBytes, h.WarmStatus
		cpu := time.Duration(h.CpuMs) * time.Millisecond
		s.progress.use(t.Task, cpu, h.IoBytes)
		s.progress.count(now, t.Task, h)
		t.Pressure = h.Pressure
		t.CpuCores = s.samples.AddUsage(now, t.Task, h)
		t.SentBytesPerSecond, t.ReceivedBytesPerSecond = h.GetSentBytesPerSecond(), h.GetReceivedBytesPerSecond()
		t.GpuPercent, t.GpuMemoryBytes, t.GpuMemoryLimitBytes = h.GetGpu().GetPercent(), h.GetGpu().GetMemoryBytes(), h.GetGpu().GetMemoryLimitBytes()
		t.MemoryPeakBytes = max(t.MemoryPeakBytes, h.RssBytes)
		if h.Line != "" {
			t.Line, t.LineAtUnixMs = h.Line, now.UnixMilli()-h.LineAgeMs
		}
		s.reportStep(now, t, h.Step, h.StepAgeMs)
		if h.TotalSteps != 0 && h.Step == s.status.Step && !s.totalGiven {
			s.status.TotalSteps = h.TotalSteps
		}
		s.reportScalars(now, t, h.Scalars)
		s.reportRestore(now, t, h.Restore)
		s.progress.reportOther(t.Task, h.OtherProgress)
	}
	return s.progress.due(now)
}

// Exited takes in the last step that an attempt made before it ended, its last scalars, and
// what it read at first: heartbeats may not have told of them. It is called while the container
// still hosts the task.
func (s *Store) Exited(container string, e *proto.Exited) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.hosted[container]; t != nil {
		s.reportStep(now, t, e.Step, e.StepAgeMs)
		s.reportScalars(now, t, e.Scalars)
		s.reportRestore(now, t, e.Restore)
	}
}

// reportRestore takes in how long the attempt of a task has read its checkpoints, which is told
// again and again; r may be nil. What ended before this master began its predecessor has
// counted. s.mu is held.
func (s *Store) reportRestore(now time.Time, t *proto.TaskStatus, r *proto.Restore) {
	if r == nil || t.RestoreMs != nil {
		return
	}
	t.RestoreMs = &r.TookMs
	if ended := now.Add(-time.Duration(r.AgeMs) * time.Millisecond); !ended.Before(s.began) {
		s.totals.Restores.add(r.TookMs)
	}
}

// Saved takes in how long the save of a checkpoint that is complete now has taken.
func (s *Store) Saved(took time.Duration) {
	ms := took.Milliseconds()
	s.Update(func(status *proto.JobStatus) {
		status.SaveMs = &ms
		s.totals.Saves.add(ms)
	})
}

// reportStep takes in a step that a task reports, and how long ago it was made. s.mu is held.
func (s *Store) reportStep(now time.Time, t *proto.TaskStatus, step, ageMs int64) {
	if s.progress.report(now, t.Task, step) {
		recordStep(s.status, s.totals, t, step, now.Add(-time.Duration(ageMs)*time.Millisecond))
		s.status.StepsPerSecond = s.progress.rate
		s.samples.AddStep(now, step, s.progress.rate)
	}
}

// maxScalars is the number of names of scalars of which the status has the last value.
const maxScalars = 16

// reportScalars takes in the scalars that a task reports. s.mu is held.
func (s *Store) reportScalars(now time.Time, t *proto.TaskStatus, list []*proto.Scalar) {
	s.samples.AddScalars(now, t.Task, list)
	for _, v := range list {
		i, known := slices.BinarySearchFunc(s.status.Scalars, v.Name, func(k *proto.ScalarValue, name string) int { return strings.Compare(k.Name, name) })
		switch {
		case !known && len(s.status.Scalars) == maxScalars:
			continue
		case !known:
			s.status.Scalars = slices.Insert(s.status.Scalars, i, &proto.ScalarValue{Name: v.Name})
		}
		k := s.status.Scalars[i]
		k.Value, k.Task, k.Step, k.AtUnixMs = v.Value, t.Task, t.Step, now.UnixMilli()
	}
}

// Committed takes in the files that a task has completed in a checkpoint directory.
// TakeSteps then says that a checkpoint is being saved.
func (s *Store) Committed(files []*proto.CommittedFile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.saving = true
	for _, f := range files {
		if len(f.From) == 0 { // else it was renamed, and counted under its previous name
			s.totals.StoredBytes += uint64(max(0, f.Size))
		}
	}
}

// TakeSteps returns what was reported since its last call, for core.
func (s *Store) TakeSteps() event.StepsReported {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.progress.take(time.Now())
}

// SetTotalSteps sets how many steps the program makes in all, as a checkpoint of a time says it,
// unless the job's user has said it, or the checkpoint is from before the job.
func (s *Store) SetTotalSteps(steps int64, of time.Time) {
	s.Update(func(status *proto.JobStatus) {
		if steps > 0 && !s.totalGiven && of.UnixMilli() >= status.StartedUnixMs {
			status.TotalSteps = steps
		}
	})
}

// SetCompleteStep sets the step of the newest complete checkpoint, which has just been found to
// be complete.
func (s *Store) SetCompleteStep(step int64) {
	now := time.Now()
	s.samples.AddCheckpoint(now, step)
	s.Update(func(status *proto.JobStatus) {
		status.CompleteStep, status.CompleteStepAtUnixMs = step, now.UnixMilli()
		s.expectNext(step, now)
	})
}

// FoundComplete sets the step of the newest complete checkpoint, which was complete when this
// master began. When that was, its predecessor may have known; otherwise it is at.
func (s *Store) FoundComplete(step int64, at time.Time) {
	s.Update(func(status *proto.JobStatus) {
		if status.CompleteStep != step || status.CompleteStepAtUnixMs == 0 {
			status.CompleteStep, status.CompleteStepAtUnixMs = step, at.UnixMilli()
			status.SaveMs = nil
		}
		s.expectNext(step, time.UnixMilli(status.CompleteStepAtUnixMs))
	})
}

// expectNext takes in when the newest complete checkpoint was complete, and expects the next. s.mu
// is held.
func (s *Store) expectNext(step int64, at time.Time) {
	s.cadence.complete(step, at)
	s.status.NextCheckpointUnixMs = 0
	if next := s.cadence.next(); !next.IsZero() {
		s.status.NextCheckpointUnixMs = next.UnixMilli()
	}
}

// SetLogs sets the URL of the NodeManager's page with the logs of a container.
func (s *Store) SetLogs(container, url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.logs == nil {
		s.logs = map[string]string{}
	}
	if _, known := s.logs[container]; !known {
		s.logged = append(s.logged, container)
	}
	s.logs[container] = url
	// The oldest that host no task make room, many at a time. The newest may be about to.
	newest := len(s.status.Tasks) + maxSpareLogs/2
	if len(s.logged) <= 2*newest {
		return
	}
	kept := s.logged[:0]
	for i, c := range s.logged {
		if s.hosted[c] == nil && i < len(s.logged)-newest {
			delete(s.logs, c)
			continue
		}
		kept = append(kept, c)
	}
	s.logged = kept
}

// Steps returns the step that a task reported last, and that of the newest complete
// checkpoint; 0 if none is known.
func (s *Store) Steps() (step, complete int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status.Step, s.status.CompleteStep
}

// LastRecovery describes the latest recovery of a task; "" if there was none.
func (s *Store) LastRecovery() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.status.Events) - 1; i >= 0; i-- {
		if e := s.status.Events[i]; e.Kind == action.KindRecovered {
			return fmt.Sprintf("%s came back (%s)", e.Task, e.Text)
		}
	}
	return ""
}

// updateTask copies what core knows about a task; what its agent reports stays, and if that is
// inherited, how it was lost last.
func updateTask(s *proto.TaskStatus, t core.Task, inherited bool) {
	if s.Attempt != int32(t.Attempt) {
		s.Line, s.LineAtUnixMs, s.RestoreMs = "", 0, nil // they were the last one's
	}
	s.Task, s.Role, s.Index, s.State = t.Name, t.Role.Name, int32(t.Index), t.State
	s.Vcores, s.Gpus, s.MemoryLimitBytes = t.Role.Vcores, t.Role.Gpus, t.MemoryMB<<20
	if s.Resources == nil {
		s.Resources = t.Role.Others()
	}
	s.Attempt, s.Failures = int32(t.Attempt), int32(t.Failures())
	if t.Container != "" || !t.State.Done() { // else it says where the task has run
		s.Container, s.Node = t.Container, t.Node
	}
	s.Pid, s.AgentPid, s.Port = int32(t.PID), int32(t.AgentPID), int32(t.Port)
	if !inherited {
		updateLoss(s, t)
	} else if t.State == proto.TaskState_TASK_STATE_SUCCEEDED {
		s.Why = ""
	}
	s.ParkedSinceUnixMs, s.ParkedCause = 0, ""
	if t.Parked {
		s.State, s.Why = proto.TaskState_TASK_STATE_PARKED, "the others work without it"
		s.RssBytes, s.CpuCores, s.SentBytesPerSecond, s.ReceivedBytesPerSecond = 0, 0, 0, 0 // of an agent that may be gone
		s.GpuPercent, s.GpuMemoryBytes, s.GpuMemoryLimitBytes = 0, 0, 0
		if !t.Since.IsZero() {
			s.ParkedSinceUnixMs = t.Since.UnixMilli()
		}
		if t.ParkedBy != event.CauseUnknown {
			s.ParkedCause = t.ParkedBy.String()
			s.Why += ": " + s.ParkedCause
		}
	}
	updateSpeed(s, t)
	s.RealAddress, s.WebUrl = "", ""
	if t.RealPort != 0 {
		s.RealAddress = net.JoinHostPort(t.Host, strconv.Itoa(t.RealPort))
		if t.Role.WebPath != "" && t.State == proto.TaskState_TASK_STATE_RUNNING {
			s.WebUrl = "http://" + s.RealAddress + t.Role.WebPath
		}
	}
}

// updateLoss copies how a task was lost last.
func updateLoss(s *proto.TaskStatus, t core.Task) {
	s.Why, s.Tail = t.Why, t.Tail
	s.ExitCode, s.ExitSignal = nil, int32(t.Exit.Signal)
	if t.Exit.Code != 0 || t.Exit.Signal != 0 {
		code := int32(t.Exit.Code)
		s.ExitCode = &code
	}
}

// spareStatus returns the status of the spares. What agents reported is taken over from
// known, their status until now.
func spareStatus(spares []core.Spare, known []*proto.SpareStatus) []*proto.SpareStatus {
	var list []*proto.SpareStatus
	for _, s := range spares {
		shown := &proto.SpareStatus{Container: s.Container, Node: s.Node, AgentPid: int32(s.AgentPID)}
		for _, k := range known {
			if k.Container == s.Container {
				shown.AgentRssBytes, shown.WarmRssBytes, shown.WarmStatus = k.AgentRssBytes, k.WarmRssBytes, k.WarmStatus
			}
		}
		list = append(list, shown)
	}
	return list
}

func avoidedNodes(list []nodes.Avoided) []*proto.AvoidedNode {
	var shown []*proto.AvoidedNode
	for _, n := range list {
		a := &proto.AvoidedNode{Node: n.Node, Why: n.Why}
		if !n.Until.IsZero() {
			a.UntilUnixMs = n.Until.UnixMilli()
		}
		shown = append(shown, a)
	}
	return shown
}
