package e2e

import (
	"path"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/proto"
)

// TestTheMasterIsLost: tasks do not notice, and what is lost after that is
// dealt with by the next master.
func TestTheMasterIsLost(t *testing.T) {
	plain.enter(t)
	for _, loss := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"killed", syscall.SIGKILL},
		{"ended", syscall.SIGTERM}, // as a NodeManager does
	} {
		t.Run(loss.name, func(t *testing.T) {
			c := hadoop(t)
			j := where{c}.train(t, c.HDFS()+"/tests/"+strings.ReplaceAll(t.Name(), "/", "-"), untilFinish)
			before := j.until(long, "all to run", running)
			j.untilCheckpoint(long, 1)
			masters := j.masters()
			if len(masters) != 1 {
				t.Fatalf("application masters: %v", masters)
			}
			lost := time.Now()
			if err := syscall.Kill(masters[0], loss.signal); err != nil {
				t.Fatal(err)
			}
			s := j.until(long, "the next master to have all agents", func(s *proto.JobStatus) bool {
				for _, t := range s.Tasks {
					if t.AgentPid == 0 || !strings.Contains(eventLog(s), "attempt 2 has taken over") {
						return false
					}
				}
				return len(s.Tasks) == 4
			})
			t.Logf("all agents were with the next master %s after the loss, status included", time.Since(lost).Round(10*time.Millisecond))
			if s.StartedUnixMs != before.StartedUnixMs {
				t.Error("the job began anew")
			}
			for _, b := range before.Tasks {
				if now := task(s, b.Task); now.Pid != b.Pid || now.Attempt != b.Attempt || now.Container != b.Container {
					t.Errorf("%s ran as process %d (attempt %d), and now as %d (attempt %d)\n%s", b.Task, b.Pid, b.Attempt, now.Pid, now.Attempt, eventLog(s))
				}
			}
			step := j.untilCheckpoint(long, 1)
			j.killContainer("ps-1")
			j.back(long, "ps-1")
			j.finish(long)
			if restored := lastNumber(t, j.logs("worker-0"), `restored step (\d+)`); restored < step {
				t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", restored, step)
			}
		})
	}
}

// eventLog returns the texts of a job's event log.
func eventLog(s *proto.JobStatus) string {
	var all strings.Builder
	for _, m := range s.Events {
		all.WriteString(m.Text + "\n")
	}
	return all.String()
}

// TestTheMasterAndItsJournalAreLost: the next master takes over what the agents
// report, and says so.
func TestTheMasterAndItsJournalAreLost(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	j := where{c}.train(t, c.HDFS()+"/tests/"+t.Name(), untilFinish)
	before := j.until(long, "all to run", running)
	step := j.untilCheckpoint(long, 1)
	masters, agent := j.masters(), int(task(before, "worker-1").AgentPid)
	if len(masters) != 1 || agent == 0 {
		t.Fatalf("application masters: %v; agent of worker-1: %d", masters, agent)
	}
	dir := j.directory()
	shown := func() bool { // where the next master will look for what the journal said
		s := &proto.JobStatus{}
		text, err := store.ReadFile(t.Context(), dir, proto.StatusFile)
		return err == nil && (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, s) == nil && running(s)
	}
	for end := time.Now().Add(long); !shown(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not show that all run", proto.StatusFile)
		}
	}
	// While it is held it writes no other.
	if err := syscall.Kill(masters[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(masters[0], syscall.SIGKILL) }() // it has ended, unless the test fails
	if err := store.WriteFile(t.Context(), dir, proto.JournalDir+"/1.json", []byte(`{"version": 1, "tasks": [{`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{masters[0], agent} { // and one task of which nobody will report
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	s := j.until(long, "all to run with the next master", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "attempt 2 has taken over") && running(s)
	})
	for _, want := range []string{"journal/1.json", "waits for what the agents in"} {
		if !strings.Contains(eventLog(s), want) {
			t.Errorf("the job does not say %q:\n%s", want, eventLog(s))
		}
	}
	for _, b := range before.Tasks {
		now := task(s, b.Task)
		if b.Task == "worker-1" {
			if now.Attempt != b.Attempt+1 {
				t.Errorf("worker-1 was attempt %d, and is %d after its loss", b.Attempt, now.Attempt)
			}
		} else if now.Pid != b.Pid || now.Attempt != b.Attempt || now.Container != b.Container {
			t.Errorf("%s ran as process %d (attempt %d), and now as %d (attempt %d)", b.Task, b.Pid, b.Attempt, now.Pid, now.Attempt)
		}
	}
	j.finish(long)
	if text := j.logs("worker-0"); strings.Contains(text, "restored step") && lastNumber(t, text, `restored step (\d+)`) < step {
		t.Errorf("worker-0 went back to before step %d:\n%s", step, text)
	}
}

// directory is the job's.
func (j *job) directory() store.Store {
	j.t.Helper()
	c, err := conf.Load(j.w.cluster.ConfDir())
	if err != nil {
		j.t.Fatal(err)
	}
	s, err := store.Open(j.t.Context(), j.w.cluster.HDFS()+path.Join("/user", rpc.CurrentUser(), proto.HomeDir, "jobs", j.id), c)
	if err != nil {
		j.t.Fatal(err)
	}
	j.t.Cleanup(func() { s.Close() })
	return s
}
