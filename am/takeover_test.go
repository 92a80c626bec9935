package am_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/recovery"
	"holdfast/proto"
)

// saved waits until a file in the job's directory contains a text so many times.
func (j *job) saved(what, name, text string, times int) {
	j.t.Helper()
	j.eventually(what, func() bool {
		b, _ := os.ReadFile(filepath.Join(j.dir, name))
		return strings.Count(string(b), text) >= times
	})
}

// stages are those that a task is said to have passed.
func (j *job) stages(task string) string {
	j.t.Helper()
	s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
	if err != nil {
		j.t.Fatal(err)
	}
	var names []string
	for _, k := range s.Tasks {
		for _, p := range k.Stages {
			if k.Task == task {
				names = append(names, p.Name)
			}
		}
	}
	return strings.Join(names, " ")
}

func TestANewMasterTakesOver(t *testing.T) {
	j := startAttempt(t, 1, nil)
	var agents []*agent
	for _, task := range []string{"ps-0", "worker-0", "worker-1"} {
		a, s := j.started(task)
		if s.Attempt != 0 {
			t.Errorf("attempt %d", s.Attempt)
		}
		j.awaitEvents(task, action.KindStarted)
		agents = append(agents, a)
	}
	j.saved("the journal's last entry", proto.JournalDir+"/1.json", `"pid":8`, 3)
	j.saved("the event log", proto.StatusFile, `"`+action.KindStarted+`"`, 3)
	if l := agents[0].assigned.LeaseMs; l == 0 {
		t.Error("no lease was granted")
	}
	before := j.stages("ps-0")
	if !strings.HasSuffix(before, "ordered started") {
		t.Errorf("ps-0 has passed %q", before)
	}
	j.takeOver(2)
	// One has ended meanwhile.
	agents[1].ended(0)
	for _, a := range agents {
		j.connect(a)
	}
	j.eventually("all tasks where they were", func() bool {
		s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []proto.TaskState{proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_SUCCEEDED, proto.TaskState_TASK_STATE_RUNNING} {
			if s.Tasks[i].State != want || s.Tasks[i].Attempt != 0 {
				return false
			}
		}
		return s.State == proto.JobState_JOB_STATE_RUNNING && s.Tasks[0].Pid == 8
	})
	if after := j.stages("ps-0"); after != before {
		t.Errorf("ps-0 is said to have passed %q, and with the master before %q", after, before)
	}
	for i, task := range []string{"ps-0", "worker-0", "worker-1"} {
		select {
		case s := <-agents[i].started:
			t.Errorf("%s was started again: %v", task, s)
		default:
		}
	}
	// A later loss is handled as usual, and attempts count on.
	j.lose("ps-0")
	again, s := j.started("ps-0")
	if s.Attempt != 1 || again.container == agents[0].container {
		t.Errorf("attempt %d in %s", s.Attempt, again.container)
	}
	agents[2].exit(0)
	final := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
	var kinds []string
	for _, m := range final.Events {
		if m.Task == "ps-0" && m.Kind != action.KindNote {
			kinds = append(kinds, m.Kind)
		}
	}
	if want := []string{action.KindStarted, action.KindLost, action.KindRecovered}; !slices.Equal(kinds, want) {
		t.Errorf("the events of ps-0 are %v, want %v: those of both masters", kinds, want)
	}
}

// A master that has lost only its connection to YARN is still alive when its successor
// reads its journal. From then on it must not send anything to agents.
func TestASupersededMasterSendsNothing(t *testing.T) {
	j := startAttempt(t, 1, nil)
	j.started("ps-0")
	worker, _ := j.started("worker-0")
	j.started("worker-1")
	if err := recovery.Announce(t.Context(), j.store, 2, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	worker.exit(1)
	select {
	case final := <-j.final:
		if final != nil {
			t.Errorf("it has ended the job as %s: %s", final.State, final.Why)
		}
	case s := <-worker.started:
		t.Errorf("it has started attempt %d", s.Attempt)
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

// A master that the cluster has given up leaves the job running for its successor.
func TestASupersededMasterLeavesTheJob(t *testing.T) {
	j := startAttempt(t, 1, nil)
	j.started("ps-0")
	j.superseded <- errors.New("another attempt was started")
	select {
	case final := <-j.final:
		if final != nil || j.outcome != nil {
			t.Errorf("it has ended the job: %v, %v", final, j.outcome)
		}
	case <-time.After(time.Minute):
		t.Error("it goes on")
	}
}

func TestATaskThatIsDoneStaysDone(t *testing.T) {
	j := startAttempt(t, 1, nil)
	ps, _ := j.started("ps-0")
	done, _ := j.started("worker-0")
	worker, _ := j.started("worker-1")
	done.exit(0)
	j.awaitEvents("worker-0", action.KindStarted, action.KindEnded)
	j.saved("the event log", proto.StatusFile, `"`+action.KindStarted+`"`, 3)
	j.eventually("the release", func() bool { return done.stream.Context().Err() != nil })
	delete(j.agents, "worker-0") // its container has ended
	j.takeOver(2)
	j.connect(ps)
	j.connect(worker)
	j.awaitEvent("its agent on n1 is connected again")
	worker.exit(0)
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

func TestAKilledJobStaysKilled(t *testing.T) {
	j := startAttempt(t, 1, nil)
	ps, _ := j.started("ps-0")
	ps.stubborn.Store(true)
	j.started("worker-0")
	j.started("worker-1")
	if _, err := j.client.Kill(context.Background(), &proto.KillRequest{Why: "enough"}); err != nil {
		t.Fatal(err)
	}
	j.saved("the decision", proto.JournalDir+"/1.json", "enough", 1)
	j.takeOver(2)
	if s := j.end(proto.JobState_JOB_STATE_KILLED); s.Why != "enough" {
		t.Errorf("it was killed because of %q", s.Why)
	}
}

// Where the journal cannot be used, running tasks are left alone, tasks of which no agent
// reports are restarted with the next attempt number, and the event log says why.
func TestAJournalThatCannotBeUsed(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"damaged":            func(f string) error { return os.WriteFile(f, []byte(`{"version": 1, "tasks": [{`), 0o600) },
		"of another version": func(f string) error { return os.WriteFile(f, []byte(`{"version": 99}`), 0o600) },
		"missing":            os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a lease to end
			j := startAttempt(t, 1, nil)
			ps, _ := j.started("ps-0")
			silent, _ := j.started("worker-0")
			worker, _ := j.started("worker-1")
			j.saved("the event log", proto.StatusFile, `"`+action.KindStarted+`"`, 3)
			j.stop()
			<-j.ended
			j.keepContainers()
			delete(j.agents, "worker-0")
			if err := spoil(filepath.Join(j.dir, proto.JournalDir, "1.json")); err != nil {
				t.Fatal(err)
			}
			before, err := recovery.FindPredecessor(t.Context(), j.config(2).Recovery())
			if err != nil {
				t.Fatal(err)
			}
			if len(before.Notes) != 1 || !strings.Contains(before.Notes[0], "the agents are asked") {
				t.Errorf("the notes are %q", before.Notes)
			}
			j.run(2, before)
			j.connect(ps)
			j.connect(worker)
			again, s := j.started("worker-0")
			if s.Attempt != 1 || !slices.Contains(j.released, silent.container) {
				t.Errorf("it came back as attempt %d; given back were %v, it was in %s", s.Attempt, j.released, silent.container)
			}
			for _, a := range []*agent{ps, worker} {
				select {
				case s := <-a.started:
					t.Errorf("%s was started again: %v", a.container, s)
				default:
				}
			}
			again.exit(0)
			worker.exit(0)
			final := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
			if !slices.ContainsFunc(final.Events, func(m *proto.JobEvent) bool { return strings.Contains(m.Text, "the agents are asked") }) {
				t.Error("the job does not tell of it")
			}
		})
	}
}
