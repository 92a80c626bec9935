package am_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
)

func TestAJobRunsToItsEnd(t *testing.T) {
	j := start(t, nil)
	ps, s := j.started("ps-0")
	if want := []string{"train", "--ps={ps_hosts}", "--me={role}-{index}"}; !slices.Equal(s.Command, want) {
		t.Errorf("command %q, want %q", s.Command, want)
	}
	if ps.assigned.Spec.Framework != "none" || ps.assigned.Job != "job_1" || ps.assigned.HeartbeatIntervalMs != 1000 {
		t.Errorf("start %v of %v", s, ps.assigned)
	}
	for i := range 3 {
		port := runtime.PeerPort("job_1", i)
		if want := (proto.TaskAddress{Port: port, Host: "127.0.0.1", RealPort: port}); ps.routes[i] != want {
			t.Errorf("task %d is said to be at %v, want %v", i, ps.routes[i], want)
		}
	}
	for i := range 2 {
		a, _ := j.started(fmt.Sprintf("worker-%d", i))
		ended := a.ended(0)
		ended.Step = int64(40 + i)
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Exited{Exited: ended}})
	}
	s2 := j.end(proto.JobState_JOB_STATE_SUCCEEDED)
	if j.outcome == nil || j.outcome.State != proto.JobState_JOB_STATE_SUCCEEDED {
		t.Errorf("the driver was told %+v", j.outcome)
	}
	text, err := os.ReadFile(filepath.Join(j.dir, proto.StatusFile))
	if err != nil {
		t.Fatal(err)
	}
	saved := &proto.JobStatus{}
	if err := protojson.Unmarshal(text, saved); err != nil {
		t.Fatal(err)
	}
	if saved.State != s2.State || saved.EndedUnixMs == 0 || len(saved.Tasks) != 3 {
		t.Errorf("%s says %v", proto.StatusFile, saved)
	}
	if saved.Step < 40 || saved.Tasks[1].Step != 40 || saved.Tasks[2].Step != 41 {
		t.Errorf("the last steps that the tasks made before their ends are not in %s: %v", proto.StatusFile, saved)
	}
}

// The others are told the address of a task that has no container, too.
func TestAJobThatStartsWithFewerKnowsAllAddresses(t *testing.T) {
	for _, name := range []string{"tensorflow", "none"} {
		t.Run(name, func(t *testing.T) {
			j := start(t, func(spec *proto.JobSpec, c *cluster) {
				spec.Framework, spec.Command = name, []string{"train", "{worker_hosts}"}
				spec.Roles[1].Count, spec.Roles[1].Min = 3, 2
				c.scarce = "worker-1"
			})
			a, _ := j.started("worker-2")
			a.mu.Lock()
			defer a.mu.Unlock()
			ports, tasks := map[string]int{}, runtime.Tasks(j.spec)
			for i, place := range a.routes {
				ports[tasks[i].Name] = place.Port
				if absent := tasks[i].Name == "worker-1"; absent != (place.Host == "") {
					t.Errorf("%s is on %q", tasks[i].Name, place.Host)
				}
			}
			argv, env, err := runtime.Command(j.spec, framework.Attempt{Task: tasks[3], Ports: ports})
			if err != nil {
				t.Fatal(err)
			}
			told := []string{argv[1]}
			if name == "tensorflow" {
				told = append(told, env["TF_CONFIG"])
			}
			for _, text := range told {
				if absent := fmt.Sprintf("worker-1:%d", runtime.PeerPort("job_1", 2)); !strings.Contains(text, absent) || strings.Count(text, "worker-") != 3 {
					t.Errorf("worker-2 is told of %s", text)
				}
			}
		})
	}
}

func TestALostContainerIsReplacedAtTheSameAddress(t *testing.T) {
	j := start(t, nil)
	old, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	j.started("worker-1")
	j.awaitEvents("ps-0", action.KindStarted)
	j.lose("ps-0")
	again, s := j.started("ps-0")
	if again.container == old.container || s.Attempt != 1 {
		t.Errorf("attempt %d in %s", s.Attempt, again.container)
	}
	if again.assigned.Port != int32(runtime.PeerPort("job_1", 0)) || again.assigned.Index != old.assigned.Index {
		t.Errorf("it came back as number %d at port %d", again.assigned.Index, again.assigned.Port)
	}
	j.eventually("the worker to be told to cut its connections", func() bool {
		worker.mu.Lock()
		defer worker.mu.Unlock()
		return slices.Contains(worker.cuts, 0)
	})
	if !slices.Equal(again.routes[1:], worker.routes[1:]) || again.routes[1].Host == "" {
		t.Errorf("what came back is told that tasks are at %v, and a worker knows of %v", again.routes, worker.routes)
	}
	j.awaitEvents("ps-0", action.KindStarted, action.KindLost, action.KindRecovered)
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

func TestAFailedTaskSaysWhy(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) { s.Restarts = 1 })
	for range 2 {
		a, _ := j.started("worker-1")
		a.exit(3)
	}
	s := j.end(proto.JobState_JOB_STATE_FAILED)
	if !strings.Contains(s.Why, "worker-1") || !strings.Contains(s.Why, "exit code 3") {
		t.Errorf("why: %s", s.Why)
	}
	for _, task := range s.Tasks {
		if task.Task == "worker-1" && !slices.Equal(task.Tail, []string{"last words"}) {
			t.Errorf("tail: %q", task.Tail)
		}
	}
}

func TestKillAndWatch(t *testing.T) {
	j := start(t, func(_ *proto.JobSpec, c *cluster) { c.silent = true })
	ctx := context.Background()
	watch, err := j.client.Watch(ctx, &proto.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	j.events.Put(event.Waiting{Why: "the queue is full"})
	var last *proto.JobStatus
	killed := false
	for {
		s, err := watch.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		last = s
		if s.Why == "the queue is full" && !killed {
			killed = true
			if _, err := j.client.Kill(ctx, &proto.KillRequest{Why: "enough"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !killed || last.State != proto.JobState_JOB_STATE_KILLED || last.Why != "enough" {
		t.Errorf("watched to the end: %v", last)
	}
	j.end(proto.JobState_JOB_STATE_KILLED)
	if len(j.withdrew) != 3 {
		t.Errorf("withdrew %v", j.withdrew)
	}
}

// The cluster is told of a job's end, though stores take all the time that they may for what is to
// be written in them.
func TestTheClusterIsToldOfTheEndThoughNoStoreAnswers(t *testing.T) {
	for name, hang := range map[string]func(*cluster){
		"checkpoint directories": func(c *cluster) { c.checkpointsHang.Store(true) },
		"the job's directory":    func(c *cluster) { c.jobDirHangs.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, func(_ *proto.JobSpec, c *cluster) { c.endLimit = time.Second })
			w0, _ := j.started("worker-0")
			w1, _ := j.started("worker-1")
			ps, _ := j.started("ps-0")
			hang(j.cluster)
			ps.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{
				Path: "./train_logs", Files: []*proto.CommittedFile{{Name: []byte("step-7/COMMITTED"), Size: 2}},
			}}})
			w0.exit(0)
			w1.exit(0)
			j.end(proto.JobState_JOB_STATE_SUCCEEDED)
			if j.outcome == nil || j.outcome.State != proto.JobState_JOB_STATE_SUCCEEDED {
				t.Errorf("the cluster was told %+v", j.outcome)
			}
			said := slices.ContainsFunc(j.logged.AllEntries(), func(e *logrus.Entry) bool {
				return strings.Contains(e.Message, "cannot write "+filepath.Join(j.dir, proto.StatusFile))
			})
			if j.jobDirHangs.Load() && !said {
				t.Error("nothing says that the final status is not written")
			}
		})
	}
}

// TestWhereATaskHasRun: that is known of a task that has ended, though its container is gone, as
// its agent's log is found by that.
func TestWhereATaskHasRun(t *testing.T) {
	j := start(t, nil)
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	w0.exit(0)
	state := func(ok func(*proto.TaskStatus) bool) func() bool {
		return func() bool {
			s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
			return err == nil && slices.ContainsFunc(s.Tasks, func(t *proto.TaskStatus) bool { return t.Task == "worker-0" && ok(t) })
		}
	}
	j.eventually("worker-0 to have succeeded", state(func(t *proto.TaskStatus) bool { return t.State == proto.TaskState_TASK_STATE_SUCCEEDED }))
	j.lose("worker-0")
	j.eventually("its agent's end", state(func(t *proto.TaskStatus) bool { return t.AgentPid == 0 }))
	w1.exit(0)
	for _, task := range j.end(proto.JobState_JOB_STATE_SUCCEEDED).Tasks {
		if task.Task == "worker-0" && (task.Container != w0.container || task.Node == "") {
			t.Errorf("worker-0 has run in the container %q on %q", task.Container, task.Node)
		}
	}
}
