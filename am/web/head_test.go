package web_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/web"
	"holdfast/proto"
)

// figuresOf returns the head of a job's page.
func figuresOf(t *testing.T, text string) string {
	t.Helper()
	_, rest, ok := strings.Cut(text, `<section id="figures"`)
	figures, _, end := strings.Cut(rest, "</section>")
	if !ok || !end {
		t.Fatalf("the page has no head:\n%s", text)
	}
	return figures
}

// TestHead: one look says what the job waits for, how fast it is, how old its newest checkpoint
// is and when the next one is due, and how many incidents there were.
func TestHead(t *testing.T) {
	now := time.Now()
	job := largeJob(2)
	job.State, job.Why = proto.JobState_JOB_STATE_WAITING, "1 task waits for a container: the queue default has no room"
	job.Step, job.StepsPerSecond = 1234, 2.5
	job.CompleteStep, job.CompleteStepAtUnixMs, job.NextCheckpointUnixMs = 1200, now.Add(-4*time.Minute).UnixMilli(), now.Add(6*time.Minute).UnixMilli()
	for range 1200 {
		job.Incidents = append(job.Incidents, &proto.Incident{Task: "worker-1", RecoveredUnixMs: 1, AtUnixMs: 1})
	}
	job.Incidents[3].RecoveredUnixMs, job.Incidents[7].RecoveredUnixMs = 0, 0
	text := get(t, web.Site{Status: fixed{job}}, "/")
	if title, _, _ := strings.Cut(text, "<main>"); !strings.Contains(title, `<p class="why">1 task waits for a container: the queue default has no room</p>`) {
		t.Errorf("it does not say what the job waits for:\n%s", title)
	}
	figures := figuresOf(t, text)
	for _, want := range []string{
		"<dt>Step<dd>1,234", "<dt>Rate<dd>2.5 a second", `<dt>Incidents<dd><a href="#incidents">1,200</a> <small class="restarting">2 open</small>`,
	} {
		if !strings.Contains(figures, want) {
			t.Errorf("the head has no %q:\n%s", want, figures)
		}
	}
	if !regexp.MustCompile(`<dt>Last checkpoint<dd>step 1,200 <small>4m [0-9]s ago</small>`).MatchString(figures) || strings.Contains(figures, "next") {
		t.Errorf("of checkpoints the head of a job that waits says:\n%s", figures)
	}
	for want, next := range map[string]time.Duration{
		`<small>next in about 5m 59s</small>`:                           6*time.Minute + 500*time.Millisecond,
		`<small>next about now</small>`:                                 -30 * time.Second,
		`<small class="restarting">next was expected 5m 0s ago</small>`: -5 * time.Minute,
	} {
		job.State, job.NextCheckpointUnixMs = proto.JobState_JOB_STATE_RUNNING, time.Now().Add(next).UnixMilli()
		if figures := figuresOf(t, get(t, web.Site{Status: fixed{job}}, "/")); !strings.Contains(figures, want) && !strings.Contains(figures, strings.Replace(want, "5m 59s", "6m 0s", 1)) {
			t.Errorf("where it is due in %v, the head has no %q:\n%s", next, want, figures)
		}
	}
	job.NextCheckpointUnixMs = 0
	if figures := figuresOf(t, get(t, web.Site{Status: fixed{job}}, "/")); strings.Contains(figures, "next") {
		t.Errorf("where nothing is known of the next checkpoint, the head says:\n%s", figures)
	}
}

// TestAnEndThatIsNotKnown: a page of a job that is over does not say that it goes on getting longer.
func TestAnEndThatIsNotKnown(t *testing.T) {
	for state, grows := range map[proto.JobState]bool{proto.JobState_JOB_STATE_FAILED: false, proto.JobState_JOB_STATE_RUNNING: true} {
		job := &proto.JobStatus{Name: "n", State: state, StartedUnixMs: time.Now().Add(-50 * time.Hour).UnixMilli()}
		title, _, _ := strings.Cut(get(t, web.Site{Status: fixed{job}}, "/"), "<main>")
		if strings.Contains(title, "<span>2d 2h</span>") != grows {
			t.Errorf("of a job that is %s its page says:\n%s", proto.StateWord(state), title)
		}
	}
}

// TestWhatARestartTakes: the page of the job says which checkpoint tasks that start now continue
// from, and answers for any step, without waiting for HDFS.
func TestWhatARestartTakes(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-300/data", "step-300/COMMITTED", "step-400/data", "step-400/COMMITTED", "step-500/data")
	site := browse(t, dir)
	text := get(t, site, "/")
	if figures := figuresOf(t, text); !strings.Contains(figures, "is being looked up") || !strings.Contains(text, `data-updates="poll"`) {
		t.Errorf("while it is not known, the head says:\n%s", figures)
	}
	for end := time.Now().Add(time.Minute); strings.Contains(text, "is being looked up") && time.Now().Before(end); {
		text = get(t, site, "/")
	}
	if want := `continues from <a href="checkpoint?at=step-400&amp;dir=0">step 400</a>, <span class="complete">complete</span> <span class="soft">saved 1h 0m ago</span>`; !strings.Contains(figuresOf(t, text), want) {
		t.Errorf("the head has no %q:\n%s", want, figuresOf(t, text))
	}
	if !strings.Contains(text, `<form class="filter ask" method="get" action="checkpoints">`) || !strings.Contains(text, `name="step"`) {
		t.Error("the page has no field for a step")
	}
	for step, want := range map[string]string{
		"400":  `class="answer complete" role="status">Yes: tasks that start now continue from it; step 400 is complete. <a href="checkpoint?at=step-400&amp;dir=0">`,
		"300":  "Yes, after a rollback to it; step 300 is complete, and tasks that start now continue from step 400.",
		"500":  `class="answer torn" role="status">No: step 500 is torn: `,
		"350":  "No: there is no checkpoint of step 350. Complete ones nearby are those of the steps 300 and 400.",
		"9,00": "No: there is no checkpoint of step 900. The complete one nearby is that of step 400.",
		"4":    "No: there is no checkpoint of step 4. The complete one nearby is that of step 300.",
	} {
		if text := get(t, site, "/checkpoints?step="+step); !strings.Contains(text, want) {
			t.Errorf("of step %s there is no %q:\n%s", step, want, text)
		}
	}
	if text := get(t, site, "/checkpoints?step=400"); strings.Count(text, "<tr") != 2 {
		t.Errorf("the exact step does not select:\n%s", text)
	}
	var list struct{ Directories []struct{ Answer string } }
	if getJSON(t, site, "/checkpoints.json?step=400", &list); len(list.Directories) != 1 || !strings.HasPrefix(list.Directories[0].Answer, "Yes: ") {
		t.Errorf("checkpoints.json: %+v", list)
	}

	// Of a directory that cannot be read, it says why; an empty one begins anew.
	site = browse(t, dir+"-missing", t.TempDir())
	for end := time.Now().Add(time.Minute); strings.Contains(text, "is being looked up") || !strings.Contains(text, "out-1") && time.Now().Before(end); {
		text = get(t, site, "/")
	}
	for _, want := range []string{"of ./out-0</span> <span class=\"failed\">is not known: ", `of ./out-1</span> begins anew: <a href="checkpoints?dir=1">no checkpoint</a> is complete`} {
		if !strings.Contains(figuresOf(t, text), want) {
			t.Errorf("the head has no %q:\n%s", want, figuresOf(t, text))
		}
	}
}

// TestWhereLogsAre: on a cluster, the page leads to what NodeManagers have of a container, while
// the job runs.
func TestWhereLogsAre(t *testing.T) {
	job := largeJob(1)
	job.AmHost, job.AmLogsUrl, job.Tasks[0].ContainerLogsUrl = "node-3", "http://node-3:8042/node/containerlogs/container_1_1/amy", "http://node-4:8042/node/containerlogs/container_1_2/amy"
	site := web.Site{Status: fixed{job}}
	if text := get(t, site, "/"); !strings.Contains(text, `runs on node-3: <a href="http://node-3:8042/node/containerlogs/container_1_1/amy" rel="noreferrer">`) {
		t.Errorf("the page does not lead to the application master's logs:\n%s", text)
	}
	if text := get(t, site, "/task?task=worker-0"); !strings.Contains(text, `<a href="http://node-4:8042/node/containerlogs/container_1_2/amy" rel="noreferrer">`) {
		t.Errorf("the task's page does not lead to its container's logs:\n%s", text)
	}
	job.State = proto.JobState_JOB_STATE_FAILED
	for _, address := range []string{"/", "/task?task=worker-0"} {
		if text := get(t, site, address); strings.Contains(text, "containerlogs") {
			t.Errorf("after the end %s leads to NodeManagers, which have no logs any longer", address)
		}
	}
}
