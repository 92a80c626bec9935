package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/proto"
)

// receiver is a server that is notified.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	got []*proto.Notification
}

// newReceiver returns a receiver that answers once release is closed.
func newReceiver(t *testing.T, release <-chan struct{}) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		n := &proto.Notification{}
		if err != nil || proto.FromJSON(text, n) != nil || q.URL.RawQuery != "token=T0KEN" {
			t.Errorf("posted was to %s: %s", q.URL, text)
		}
		r.mu.Lock()
		r.got = append(r.got, n)
		r.mu.Unlock()
		select {
		case <-release:
		case <-q.Context().Done():
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// url is what --notify is given.
func (r *receiver) url() string { return r.URL + "/in?token=T0KEN" }

// until waits until what was posted is ok.
func (r *receiver) until(t *testing.T, what string, ok func([]*proto.Notification) bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		got := r.got
		r.mu.Unlock()
		if ok(got) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s, and posted were %v", what, got)
		}
	}
}

// TestStragglersAreNotified: that a task is slower than the others, and with what, that it cannot
// move on this machine, and that it keeps up again.
func TestStragglersAreNotified(t *testing.T) {
	release := make(chan struct{})
	close(release)
	r, p := newReceiver(t, release), newPlace(t)
	slow := filepath.Join(p.dir, "slow")
	write(t, slow, "")
	id := p.detached("--worker", "3", "--straggler-time", "10s", "--straggler-moves", "1", "--notify", r.url(), "--",
		"sh", "-c", `i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.1; [ {index} = 1 ] && [ -e "$0" ] && sleep 1.5; done`, slow)
	posted := func(event, text string) func([]*proto.Notification) bool {
		return func(got []*proto.Notification) bool {
			return slices.ContainsFunc(got, func(n *proto.Notification) bool {
				return n.Event == event && n.Task == "worker-1" && n.Id == id && n.State == proto.JobState_JOB_STATE_RUNNING && strings.Contains(n.Text, text)
			})
		}
	}
	r.until(t, "the straggler to be named", posted("straggler", "it is slower than the others of the role worker"))
	r.until(t, "a word that it does not move", posted("straggler", "it stays there"))
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	r.until(t, "it to keep up", posted("recovered", "it is as fast as the others again"))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.got {
		if n.Task != "worker-1" {
			t.Errorf("posted was %v", n)
		}
	}
}

// TestNotifications: a server is told that a task has come back and how the job ended, and
// nothing that others can read tells its address.
func TestNotifications(t *testing.T) {
	release := make(chan struct{})
	close(release)
	r, p := newReceiver(t, release), newPlace(t)
	id := p.detached("--worker", "1", "--name", "told", "--notify", r.url(), "--", "sh", "-c", "echo step 7; exec sleep 1000")
	s := p.until(id, "the task runs", func(s *proto.JobStatus) bool { return s.Step == 7 && s.Tasks[0].Pid != 0 })
	if err := syscall.Kill(int(s.Tasks[0].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	last := func(event string, state proto.JobState, task, text string) func([]*proto.Notification) bool {
		return func(got []*proto.Notification) bool {
			if len(got) == 0 {
				return false
			}
			n := got[len(got)-1]
			return n.Event == event && n.State == state && n.Task == task && strings.Contains(n.Text, text) &&
				n.Id == id && n.Name == "told" && n.User == s.User && n.Step == 7 && time.Since(time.UnixMilli(n.AtUnixMs)) < limit
		}
	}
	r.until(t, "the task to recover", last("recovered", proto.JobState_JOB_STATE_RUNNING, "worker-0", "attempt 1 runs on"))
	if _, errs, code := p.call("kill", id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	r.until(t, "the job to end", last("ended", proto.JobState_JOB_STATE_KILLED, "", "killed"))

	due := filepath.Join(p.dir, "due")
	failing := p.detached("--worker", "1", "--restarts", "0", "--notify", r.url(), "--", "sh", "-c", `until [ -e "$0" ]; do sleep 0.05; done; exit 3`, due)
	write(t, due, "")
	r.until(t, "the job to fail", func(got []*proto.Notification) bool {
		n := got[len(got)-1]
		return n.Id == failing && n.Event == "failed" && n.State == proto.JobState_JOB_STATE_FAILED && strings.Contains(n.Text, "worker-0")
	})
	for _, id := range []string{id, failing} {
		p.until(id, "its end", func(s *proto.JobStatus) bool { return s.State.Done() })
		status, _, _ := p.call("status", id, "--output", "json")
		log, _, _ := p.call("logs", id, "am")
		if strings.Contains(status+log, "T0KEN") {
			t.Errorf("a secret is told:\n%s\n%s", status, log)
		}
	}
}

// TestAServerThatHangsIsNotWaitedFor: the job ends as early as without it, and its
// application master a few seconds later.
func TestAServerThatHangsIsNotWaitedFor(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	r, p := newReceiver(t, release), newPlace(t)
	write(t, filepath.Join(p.dir, "job.yaml"), "local: true\nroles: {worker: 1}\nnotify: "+r.url()+"\ncommand: \"true\"\n")
	begin := time.Now()
	out, errs, code := p.call("run", "-f", "job.yaml")
	if code != 0 {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	took := time.Since(begin)
	id := strings.Fields(strings.TrimPrefix(out, "started "))[0]
	r.until(t, "a request", func(got []*proto.Notification) bool { return len(got) > 0 })
	alone(t, id) // its application master has ended
	if all := time.Since(begin); all-took > 15*time.Second {
		t.Errorf("the application master has ended %s after the job", all-took)
	}
	if log, _, _ := p.call("logs", id, "am"); !strings.Contains(log, "was not notified that the job ended") || strings.Contains(log, "T0KEN") {
		t.Errorf("the log of the application master is:\n%s", log)
	}
}
