package status

import (
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/status/samples"
	"holdfast/proto"
)

// training is a job of one parameter server and two workers, whose losses and steps a store is
// told. Times are from its beginning, which was a while ago: what agents tell late has an age.
type training struct {
	*testing.T
	job   *core.Job
	store *Store
	began time.Time
	held  []event.Event // that let what was lost start again

	starts []event.Event // of what core has decided to start
}

func newTraining(t *testing.T, loss proto.LossRule) *training {
	ps := &proto.RoleSpec{Name: "ps", Count: 1, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_SERVICE}
	worker := &proto.RoleSpec{Name: "worker", Count: 2, Loss: loss, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED}
	tr := &training{T: t, began: time.Now().Add(-time.Hour)}
	tr.job = core.New([]core.Task{{Name: "ps-0", Role: ps, Port: 20000}, {Name: "worker-0", Role: worker, Port: 20001}, {Name: "worker-1", Role: worker, Index: 1, Port: 20002}}, 3, 0, core.Limits{})
	tr.store = New(&proto.JobStatus{}, samples.New("", tr.began, nil), nil, 0)
	tr.step(0, event.Begin{})
	tr.back(0)
	return tr
}

// step has core take in events, and the store what comes of them, up to where the checkpoints
// are looked at before anything starts.
func (tr *training) step(at time.Duration, queue ...event.Event) {
	now := tr.began.Add(at)
	for ; len(queue) > 0; queue = queue[1:] {
		var events []*proto.JobEvent
		for _, a := range tr.job.Step(now, queue[0]) {
			switch a := a.(type) {
			case action.Ask:
				queue = append(queue, event.Allocated{Request: a.Request, Container: "c-" + a.Task, Node: "n"})
			case action.Launch:
				queue = append(queue, event.AgentConnected{Container: a.Container, Host: "h", PID: 1, Attempt: -1})
			case action.Assign:
				queue = append(queue, event.AgentPrepared{Container: a.Container, Port: a.Port})
			case action.Stop:
				queue = append(queue, event.TaskExited{Container: a.Container, Attempt: tr.attempt(a.Container), Signal: 15, Stopped: true})
			case action.PrepareStore:
				tr.held = append(tr.held, event.StorePrepared{})
			case action.Start:
				tr.starts = append(tr.starts, event.TaskStarted{Container: a.Container, Attempt: a.Attempt, PID: 2})
			case action.Record:
				events = append(events, &proto.JobEvent{AtUnixMs: now.UnixMilli(), Task: a.Task, Kind: a.Kind, Text: a.Text, SinceLossMs: a.TookMS})
			}
		}
		tr.store.Apply(tr.job, events, nil)
	}
}

func (tr *training) attempt(container string) int {
	for _, t := range tr.job.Tasks() {
		if t.Container == container {
			return t.Attempt
		}
	}
	tr.Fatalf("no task is in %s", container)
	return 0
}

// lose has the processes of tasks end.
func (tr *training) lose(at time.Duration, tasks ...string) {
	for _, task := range tasks {
		tr.step(at, event.TaskExited{Container: "c-" + task, Attempt: tr.attempt("c-" + task), Signal: 9})
	}
}

// back starts what was lost.
func (tr *training) back(at time.Duration) {
	tr.start(at)
	tr.started(at)
}

// start has core decide to start it.
func (tr *training) start(at time.Duration) {
	tr.step(at, event.Tick{})
	for len(tr.held) > 0 {
		held := tr.held
		tr.held = nil
		tr.step(at, held...)
	}
}

// started has agents tell that they have started it.
func (tr *training) started(at time.Duration) {
	starts := tr.starts
	tr.starts = nil
	tr.step(at, starts...)
	for _, t := range tr.job.Tasks() {
		if t.State != proto.TaskState_TASK_STATE_RUNNING {
			tr.Fatalf("%s is %v, and not running", t.Name, t.State)
		}
	}
}

// tell has an agent tell of a step.
func (tr *training) tell(s told) {
	tr.store.Heartbeat("c-"+s.task, &proto.Heartbeat{Step: s.step, ReportedSteps: 1, StepAgeMs: time.Since(tr.began.Add(s.made)).Milliseconds()})
}

// takeOver has a successor go on with what was saved.
func (tr *training) takeOver() {
	saved, _ := tr.store.Snapshot()
	begun := &proto.JobStatus{}
	TakeOver(begun, saved)
	tr.store = New(begun, samples.New("", tr.began, nil), nil, 0)
	tr.store.Apply(tr.job, nil, nil)
}

// told is a step that a task tells of, and when it was made.
type told struct {
	task string
	step int64
	made time.Duration
}

// cost is what is said of an incident.
type cost struct {
	task          string
	lost, resumed int64
	after         time.Duration // from the loss to the step
}

const (
	lostAt = 100 * time.Second
	backAt = 120 * time.Second
)

// TestWhatALossCosts: of the steps that tasks tell of, those count that were made when what was
// lost was back, whenever they are told; and the job has gone back to a checkpoint where the
// model was lost, or where a task makes steps that it had made before.
func TestWhatALossCosts(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		before   []told
		complete int64    // checkpoint, before the loss
		lost     []string // tasks
		sealed   int64    // after that; 0: none
		after    []told
		want     []cost
	}{
		"back to the beginning": {
			before: []told{{"worker-0", 394, 95 * s}}, lost: []string{"ps-0"},
			after: []told{{"worker-0", 195, 150 * s}}, want: []cost{{"ps-0", 394, 195, 50 * s}},
		},
		"back to a checkpoint": {
			before: []told{{"worker-0", 394, 95 * s}}, complete: 300, lost: []string{"ps-0"},
			after: []told{{"worker-0", 305, 150 * s}, {"worker-0", 315, 160 * s}}, want: []cost{{"ps-0", 94, 305, 50 * s}},
		},
		"a parameter server, and steps are rare": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 350, lost: []string{"ps-0"},
			after: []told{{"worker-0", 600, 150 * s}}, want: []cost{{"ps-0", 50, 600, 50 * s}},
		},
		"sealed a moment after the loss": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 300, lost: []string{"ps-0"}, sealed: 400,
			after: []told{{"worker-0", 500, 150 * s}}, want: []cost{{"ps-0", 0, 500, 50 * s}},
		},
		"sealed long after the loss": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 300, lost: []string{"ps-0"}, sealed: 700,
			after: []told{{"worker-0", 710, 150 * s}}, want: []cost{{"ps-0", 100, 710, 50 * s}},
		},
		"a parameter server, and a step from before its loss is told when it is back": {
			before: []told{{"worker-0", 400, 90 * s}}, complete: 350, lost: []string{"ps-0"},
			after: []told{{"worker-0", 402, 98 * s}, {"worker-1", 351, 150 * s}}, want: []cost{{"ps-0", 52, 351, 50 * s}},
		},
		"a parameter server, and the worker that is behind tells last": {
			before: []told{{"worker-0", 410, 95 * s}, {"worker-1", 405, 94 * s}}, complete: 350, lost: []string{"ps-0"},
			after: []told{{"worker-1", 351, 150 * s}}, want: []cost{{"ps-0", 60, 351, 50 * s}},
		},
		"a worker, and the others go on": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 401, 150 * s}}, want: []cost{{"worker-0", 0, 401, 50 * s}},
		},
		"a worker, and the other is behind it": {
			before: []told{{"worker-1", 404, 80 * s}, {"worker-0", 410, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 405, 150 * s}, {"worker-0", 412, 160 * s}}, want: []cost{{"worker-0", 0, 405, 50 * s}},
		},
		"a worker, and a step of the other from before the loss is told when it is back": {
			before: []told{{"worker-0", 410, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 405, 94 * s}, {"worker-1", 411, 150 * s}}, want: []cost{{"worker-0", 0, 411, 50 * s}},
		},
		"a worker, and the other's steps from while it was away": {
			before: []told{{"worker-0", 410, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 415, 110 * s}, {"worker-1", 420, 150 * s}}, want: []cost{{"worker-0", 0, 420, 50 * s}},
		},
		"a chief that restores a checkpoint over what the others have trained": {
			before: []told{{"worker-0", 400, 95 * s}, {"worker-1", 399, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 420, 115 * s}, {"worker-1", 430, 130 * s}, {"worker-0", 351, 150 * s}, {"worker-1", 353, 160 * s}},
			want:  []cost{{"worker-0", 80, 351, 50 * s}},
		},
		"a chief whose restoring the other's steps show": {
			before: []told{{"worker-0", 390, 90 * s}, {"worker-1", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 420, 115 * s}, {"worker-1", 430, 130 * s}, {"worker-1", 352, 150 * s}, {"worker-0", 353, 160 * s}},
			want:  []cost{{"worker-0", 80, 352, 50 * s}},
		},
		"a chief that saves as soon as it has restored": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"}, sealed: 360,
			after: []told{{"worker-0", 355, 150 * s}}, want: []cost{{"worker-0", 50, 355, 50 * s}},
		},
		"a worker that has saved when it was told to end": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 300, lost: []string{"worker-0"}, sealed: 400,
			after: []told{{"worker-0", 400, 150 * s}}, want: []cost{{"worker-0", 0, 400, 50 * s}},
		},
		"a chief that tells every fiftieth step": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-0", 400, 150 * s}}, want: []cost{{"worker-0", 50, 400, 50 * s}},
		},
		"a chief and a worker at once": {
			before: []told{{"worker-0", 400, 95 * s}, {"worker-1", 400, 95 * s}}, complete: 350, lost: []string{"worker-0", "worker-1"},
			after: []told{{"worker-0", 351, 150 * s}, {"worker-1", 352, 160 * s}},
			want:  []cost{{"worker-0", 50, 351, 50 * s}, {"worker-1", 0, 351, 50 * s}},
		},
		"a parameter server and a worker at once": {
			before: []told{{"worker-0", 400, 95 * s}, {"worker-1", 400, 95 * s}}, complete: 350, lost: []string{"worker-0", "ps-0"},
			after: []told{{"worker-0", 351, 150 * s}, {"worker-1", 352, 160 * s}},
			want:  []cost{{"worker-0", 0, 351, 50 * s}, {"ps-0", 50, 351, 50 * s}},
		},
		"what makes no steps, and the program counts from the beginning again": {
			before: []told{{"worker-1", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-1", 401, 150 * s}, {"worker-1", 1, 160 * s}}, want: []cost{{"worker-0", 0, 401, 50 * s}},
		},
		"a worker, and long after its program counts from the beginning again": {
			before: []told{{"worker-0", 400, 95 * s}}, complete: 350, lost: []string{"worker-0"},
			after: []told{{"worker-0", 401, 150 * s}, {"worker-0", 1, 160 * s}}, want: []cost{{"worker-0", 0, 401, 50 * s}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, takenOver := range []bool{false, true} {
				tr := newTraining(t, proto.LossRule_LOSS_RULE_ALONE)
				for _, s := range c.before {
					tr.tell(s)
				}
				tr.store.SetCompleteStep(c.complete)
				tr.lose(lostAt, c.lost...)
				tr.back(backAt)
				if c.sealed != 0 {
					tr.store.SetCompleteStep(c.sealed)
				}
				for _, s := range c.after {
					if takenOver {
						tr.takeOver()
					}
					tr.tell(s)
				}
				tr.costs(c.want...)
			}
		})
	}
}

// costs checks what is said of all incidents.
func (tr *training) costs(want ...cost) {
	tr.Helper()
	status, _ := tr.store.Snapshot()
	var all uint64
	for n, i := range status.Incidents {
		if n >= len(want) {
			break
		}
		w := want[n]
		after := time.Duration(i.ProgressAfterMs) * time.Millisecond
		if i.Task != w.task || i.LostSteps != w.lost || i.ResumedStep != w.resumed || (after-w.after).Abs() > 5*time.Second || i.ProgressUnixMs != i.AtUnixMs+i.ProgressAfterMs {
			tr.Errorf("%s: %d steps lost, and it went on with step %d after %s; want %s: %d, %d and %s", i.Task, i.LostSteps, i.ResumedStep, after, w.task, w.lost, w.resumed, w.after)
		}
		all += uint64(w.lost)
	}
	if len(status.Incidents) != len(want) {
		tr.Errorf("the incidents are %v; want %d", status.Incidents, len(want))
	}
	if got := tr.store.Totals(); got.RepeatedSteps != all || got.Progress.Count != uint64(len(want)) {
		tr.Errorf("in all, %d steps are repeated, and %d times the job went on; want %d and %d", got.RepeatedSteps, got.Progress.Count, all, len(want))
	}
}

// TestStepsThatAreToldAfterALossAreLost: of ranks, the others' last steps are heard when they
// have been stopped.
func TestStepsThatAreToldAfterALossAreLost(t *testing.T) {
	tr := newTraining(t, proto.LossRule_LOSS_RULE_ALL)
	tr.tell(told{"worker-0", 10, 90 * time.Second})
	tr.lose(lostAt, "worker-0")
	tr.store.Exited("c-worker-1", &proto.Exited{Step: 18, StepAgeMs: time.Since(tr.began.Add(lostAt)).Milliseconds()})
	tr.back(backAt)
	tr.tell(told{"worker-1", 1, 150 * time.Second})
	tr.tell(told{"worker-0", 2, 160 * time.Second})
	tr.costs(cost{"worker-0", 18, 1, 50 * time.Second})
}

// TestAStepIsToldBeforeTheStart: agents' steps are taken in at once, and what else they tell when
// the application master has the time.
func TestAStepIsToldBeforeTheStart(t *testing.T) {
	tr := newTraining(t, proto.LossRule_LOSS_RULE_ALONE)
	tr.tell(told{"worker-0", 400, 90 * time.Second})
	tr.store.SetCompleteStep(350)
	tr.lose(lostAt, "worker-0")
	tr.start(backAt)
	tr.tell(told{"worker-0", 351, backAt})
	tr.started(backAt + time.Second)
	tr.tell(told{"worker-0", 352, backAt + time.Second})
	tr.tell(told{"worker-0", 360, 150 * time.Second})
	tr.costs(cost{"worker-0", 50, 351, 20 * time.Second})
}

// TestTheLastStepsOfAnAttemptCount: heartbeats may not have told of any.
func TestTheLastStepsOfAnAttemptCount(t *testing.T) {
	tr := newTraining(t, proto.LossRule_LOSS_RULE_ALONE)
	tr.tell(told{"worker-0", 10, 90 * time.Second})
	tr.lose(lostAt, "worker-0")
	tr.back(backAt)
	tr.store.Exited("c-worker-0", &proto.Exited{Step: 20, StepAgeMs: time.Since(tr.began.Add(150 * time.Second)).Milliseconds()})
	tr.costs(cost{"worker-0", 0, 20, 50 * time.Second})
}

// TestALossAfterARollback: what was made before the job went back is not lost twice.
func TestALossAfterARollback(t *testing.T) {
	const s = time.Second
	tr := newTraining(t, proto.LossRule_LOSS_RULE_ALONE)
	tr.tell(told{"worker-0", 400, 90 * s})
	tr.tell(told{"worker-1", 430, 90 * s})
	tr.store.SetCompleteStep(350)
	tr.lose(lostAt, "ps-0")
	tr.back(backAt)
	tr.tell(told{"worker-0", 360, 150 * s}) // and worker-1 is slow
	tr.lose(200*s, "ps-0")
	tr.back(220 * s)
	tr.tell(told{"worker-0", 351, 250 * s})
	tr.tell(told{"worker-1", 352, 260 * s})
	tr.costs(cost{"ps-0", 80, 360, 50 * s}, cost{"ps-0", 10, 351, 50 * s})
}

// TestWhatRollsBack: the model's state goes with ranks and with parameter servers, and not
// with a service that only coordinates.
func TestWhatRollsBack(t *testing.T) {
	const service = proto.CompletionRule_COMPLETION_RULE_SERVICE
	for _, c := range []struct {
		role *proto.RoleSpec
		want bool
	}{
		{&proto.RoleSpec{Loss: proto.LossRule_LOSS_RULE_ALL}, true},
		{&proto.RoleSpec{Completion: service}, true},
		{&proto.RoleSpec{Completion: service, Coordinates: true}, false},
		{&proto.RoleSpec{}, false},
	} {
		if got := rollsBack(core.Task{Role: c.role}); got != c.want {
			t.Errorf("%v: %v", c.role, got)
		}
	}
}

// TestALostContainerOfAParkedTaskIsNoIncident: the others do not stop for it, however long the
// task is without another.
func TestALostContainerOfAParkedTaskIsNoIncident(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 2, Min: 1, Loss: proto.LossRule_LOSS_RULE_ALL}
	job := core.New([]core.Task{{Name: "worker-0", Role: role}, {Name: "worker-1", Role: role, Index: 1}}, 3, 0, core.Limits{})
	s := New(&proto.JobStatus{}, nil, nil, 0)
	at := time.Unix(1000, 0)
	last := ""
	step := func(events ...event.Event) {
		for _, e := range events {
			var list []*proto.JobEvent
			for _, a := range job.Step(at, e) {
				switch a := a.(type) {
				case action.Record:
					list = append(list, &proto.JobEvent{AtUnixMs: at.UnixMilli(), Task: a.Task, Kind: a.Kind, Text: a.Text, SinceLossMs: a.TookMS})
				case action.Ask:
					last = a.Request
				}
			}
			s.Apply(job, list, nil)
		}
	}
	prepared := func(request, c string, port int) {
		step(event.Allocated{Request: request, Container: c, Node: "n"}, event.AgentConnected{Container: c, Host: "h", PID: 1, Attempt: -1}, event.AgentPrepared{Container: c, Port: port})
	}
	step(event.Begin{})
	prepared("worker-0/1", "c1", 20000)
	prepared("worker-1/2", "c2", 20001)
	step(event.StorePrepared{}, event.TaskStarted{Container: "c1", PID: 7}, event.TaskStarted{Container: "c2", PID: 8})
	makes := func(n int64) {
		s.Update(func(status *proto.JobStatus) { recordStep(status, s.totals, status.Tasks[0], n, at) })
	}
	makes(10)
	step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: time.Minute}, event.CheckpointSealed{}, event.TaskExited{Container: "c1", Signal: 15, Stopped: true})
	step(event.TaskExited{Container: "c2", Signal: 15, Stopped: true}, event.AgentDisconnected{Container: "c2", Orderly: true}, event.StorePrepared{}, event.TaskStarted{Container: "c1", Attempt: 1, PID: 9})
	at = at.Add(time.Minute)
	makes(100)

	// The container that worker-1 gets while the other works is lost before worker-1 joins.
	prepared(last, "c3", 20001)
	step(event.ContainerEnded{Container: "c3", Cause: event.CausePreempted}, event.StorePrepared{})
	at = at.Add(2 * time.Hour)
	makes(90_000)
	prepared(last, "c4", 20001)
	step(event.CheckpointSealed{}, event.TaskExited{Container: "c1", Attempt: 1, Signal: 15, Stopped: true}, event.StorePrepared{},
		event.TaskStarted{Container: "c1", Attempt: 2, PID: 9}, event.TaskStarted{Container: "c4", Attempt: 1, PID: 10})
	makes(90_001)
	status, _ := s.Snapshot()
	if len(status.Incidents) != 1 || status.Incidents[0].RecoveredAfterMs != 0 || status.IsOpen(status.Incidents[0]) {
		t.Errorf("incidents %v; want the one that worker-1 was parked for", status.Incidents)
	}
}
