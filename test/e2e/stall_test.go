package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/notify"
	"holdfast/proto"
)

// hangs makes steps, and in its first attempt worker-0 stops doing so, when the pace
// of the job has been seen for long enough.
const hangs = `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "step $i"; sleep 0.07
[ $HOLDFAST_ATTEMPT-{index} = 0-0 ] && [ $i = 290 ] && sleep 600; done; exit 0`

// TestAStalledTaskIsRestarted: and whoever is notified hears of the stall, and that it is over.
func TestAStalledTaskIsRestarted(t *testing.T) {
	plain.enter(t)
	posted := make(chan *proto.Notification, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := &proto.Notification{}
		text, err := io.ReadAll(r.Body)
		if err != nil || proto.FromJSON(text, n) != nil {
			t.Errorf("posted was %s (%v)", text, err)
		}
		posted <- n
	}))
	defer server.Close()
	j := where{}.start(t, "", "--worker", "2", "--restart-stalled", "3s", "--notify", server.URL, "--", "sh", "-c", hangs)
	s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	var events []string
	for n := (&proto.Notification{}); n.Event != notify.Ended; {
		select {
		case n = <-posted:
			events = append(events, n.Event+" "+n.Task)
			if n.Id != j.id || n.Event == notify.Stalled && (n.Step != 300 && n.Step != 290 || !strings.Contains(n.Text, "step")) {
				t.Errorf("posted was %v", n)
			}
		case <-time.After(long):
			t.Fatalf("the end is not posted; posted were %q", events)
		}
	}
	stalled, recovered := slices.Index(events, "stalled worker-0"), slices.Index(events, "recovered worker-0")
	if stalled < 0 || recovered < stalled {
		t.Errorf("posted were %q", events)
	}
	if len(s.Incidents) != 1 {
		t.Fatalf("incidents: %v", s.Incidents)
	}
	i := s.Incidents[0]
	if i.Task != "worker-0" || i.Cause != "no steps any longer" || !strings.Contains(i.Evidence, "since step 290") || i.Recovery != "in place" || i.RecoveredUnixMs == 0 {
		t.Errorf("the incident is %v", i)
	}
	if a, b := task(s, "worker-0").Attempt, task(s, "worker-1").Attempt; a != 1 || b != 0 {
		t.Errorf("worker-0 ended as attempt %d, worker-1 as %d", a, b)
	}
}

// waits makes steps, and then waits for ever, as each later attempt does at once.
const waits = `import os, time
def waits_for_peers():
    print("waits", flush=True)
    while True:
        time.sleep(1000)
if os.environ["HOLDFAST_ATTEMPT"] == "0":
    for step in range(1, 291): # so that the pace of the job has been seen for long enough
        print("step", step, flush=True)
        time.sleep(0.07)
waits_for_peers()
`

// TestAJobThatHangsFailsWithItsStack: a program that hangs, and does so again in each
// attempt, is restarted alone, then with all others, and then the job ends, and says where
// the program stands: also where tasks get no time to stop.
func TestAJobThatHangsFailsWithItsStack(t *testing.T) {
	plain.enter(t)
	script := filepath.Join(t.TempDir(), "waits.py")
	must(t, os.WriteFile(script, []byte(waits), 0o644))
	jobs := map[string]*job{}
	for name, args := range map[string][]string{"with time to stop": nil, "with none": {"--stop-grace", "0"}} {
		jobs[name] = where{}.start(t, "", append(args, "--worker", "1", "--restart-stalled", "2s", "--files", script, "--", "python3", "waits.py")...)
	}
	for name, j := range jobs {
		t.Run(name, func(t *testing.T) {
			s := j.end(long, proto.JobState_JOB_STATE_FAILED)
			const stood = `File "[^"]*waits\.py", line 5 in waits_for_peers`
			if !regexp.MustCompile(`^worker-0 has stalled, also after it and then all tasks were started again: no task has made a step for .*; it stood at ` + stood).MatchString(s.Why) {
				t.Errorf("it failed because %q", s.Why)
			}
			w := task(s, "worker-0")
			if !regexp.MustCompile(stood).MatchString(strings.Join(w.Tail, "\n")) || w.Attempt != 2 {
				t.Errorf("attempt %d was the last, and its last lines are %q", w.Attempt, w.Tail)
			}
			var told []string
			for _, e := range s.Events {
				if e.Kind == action.KindStalled {
					_, what, _ := strings.Cut(e.Text, "; ")
					told = append(told, what)
				}
			}
			if want := []string{"it is started again", "all tasks are started again", "the job ends"}; !slices.Equal(told, want) {
				t.Errorf("what was done: %q\n%s", told, eventLog(s))
			}
			if i := s.Incidents; len(i) != 2 || !regexp.MustCompile(stood).MatchString(i[0].Evidence) {
				t.Errorf("incidents: %v", i)
			}
		})
	}
}
