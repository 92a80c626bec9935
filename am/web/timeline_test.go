package web_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/web"
	"holdfast/proto"
)

// lossyJob has run for 100 minutes and has ended, so that the same is drawn always. ps-1
// was lost in the middle.
func lossyJob() *proto.JobStatus {
	minute := time.Minute.Milliseconds()
	at := func(minutes int64) int64 { return 1_800_000_000_000 + minutes*minute }
	s := &proto.JobStatus{
		State: proto.JobState_JOB_STATE_SUCCEEDED, StartedUnixMs: at(0), EndedUnixMs: at(100),
		Incidents: []*proto.Incident{{
			AtUnixMs: at(50), Task: "ps-1", Cause: "node lost", Evidence: "no word from its node", Node: "node-7", RecoveredUnixMs: at(51), RecoveredAfterMs: minute,
			Recovery: "in another container, on node-8", Step: 500, CompleteStep: 460, ResumedStep: 461, LostSteps: 40, ProgressUnixMs: at(52), ProgressAfterMs: 2 * minute,
		}},
		Events: []*proto.JobEvent{
			{AtUnixMs: at(10), Task: "ps-1", Kind: "started", Text: "attempt 0 runs on node-7"},
			{AtUnixMs: at(50) + 500, SinceLossMs: 500, Task: "ps-1", Kind: "lost", Text: "attempt 0: node lost"},
			{AtUnixMs: at(50) + 600, Kind: "note", Text: "generation 2: all tasks start again"},
			{AtUnixMs: at(51), Task: "ps-1", Kind: "recovered", Text: "attempt 1 runs on node-8"},
			{AtUnixMs: at(90), Task: "ps-1", Kind: "ended", Text: "attempt 1 ended"},
		},
		Tasks: []*proto.TaskStatus{{Task: "ps-1", Role: "ps", Attempt: 1}},
	}
	return s
}

func TestTimeline(t *testing.T) {
	job := lossyJob()
	text := get(t, web.Site{Status: fixed{job}}, "/")
	for _, want := range []string{
		`<rect class="bar lost" x="10%" width="40%"`, `<rect class="bar ended" x="51%" width="39%"`,
		"attempt 1 runs on node-8\n2027-01-15 08:51:00 – 2027-01-15 09:30:00",
		`<a href="#incident-ps-1-0"><svg x="50%"`, `id="incident-ps-1-0"`, `class="mark note"`, "generation 2: all tasks start again",
		"no word from its node", "in another container, on node-8", "no step for 2m 0s, 40 steps repeated", "all 1h 40m", "last 30m", ">08:30</text>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	// Of its last half hour, only the last attempt is there, which began before.
	text = get(t, web.Site{Status: fixed{job}}, "/?span=30m")
	if strings.Contains(text, "bar lost") || strings.Contains(text, `<a href="#incident-`) || !strings.Contains(text, `<rect class="bar ended" x="0%" width="66.67%"`) {
		t.Errorf("the last half hour is drawn as:\n%s", text)
	}
	// The middle of a long event log is missing.
	job.Events = append(job.Events[:1], job.Events[3:]...)
	if text := get(t, web.Site{Status: fixed{job}}, "/"); !strings.Contains(text, `<rect class="bar lost" x="10%" width="41%"`) {
		t.Errorf("an attempt without an end is drawn as:\n%s", text)
	}
}

// TestTimelineOfManyTasks: those that were lost have rows of their own.
func TestTimelineOfManyTasks(t *testing.T) {
	job := lossyJob()
	for i := range 1000 {
		name := fmt.Sprintf("worker-%d", i)
		job.Tasks = append(job.Tasks, &proto.TaskStatus{Task: name, Role: "worker", Index: int32(i)})
		job.Events = append(job.Events, &proto.JobEvent{AtUnixMs: job.StartedUnixMs, Task: name, Kind: "started", Text: "attempt 0"})
	}
	text := get(t, web.Site{Status: fixed{job}}, "/")
	for _, want := range []string{`<th scope="row">ps-1<`, `<th scope="row">worker: 1000 others<`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if n := strings.Count(text, `<th scope="row">`); n != 3 {
		t.Errorf("there are %d rows, want those of the job, ps-1 and the workers", n)
	}
}

// TestLossesBeforeAnAttemptBegins: a task may be lost again before its next attempt has begun, and
// before its first. Each loss has a place of its own on the page, to which its mark leads.
func TestLossesBeforeAnAttemptBegins(t *testing.T) {
	job := lossyJob()
	first := job.Incidents[0]
	for i, attempt := range []int32{0, 0, -1} {
		job.Incidents = append(job.Incidents, &proto.Incident{AtUnixMs: first.AtUnixMs + int64(i+1)*60_000, Task: "ps-1", Attempt: attempt, Cause: "container preempted"})
	}
	text := get(t, web.Site{Status: fixed{job}}, "/")
	for _, id := range []string{"incident-ps-1-0", "incident-ps-1-0.2", "incident-ps-1-0.3", "incident-ps-1--1"} {
		if strings.Count(text, `id="`+id+`"`) != 1 || strings.Count(text, `href="#`+id+`"`) != 1 {
			t.Errorf("%d elements are %s, and %d marks lead there", strings.Count(text, `id="`+id+`"`), id, strings.Count(text, `href="#`+id+`"`))
		}
	}
	if !strings.Contains(text, "<dt>Attempt<dd>before the first") || strings.Contains(text, "attempt=-1") || strings.Contains(text, "attempt -1") {
		t.Errorf("of a loss before the first attempt the page says:\n%s", text)
	}
}

// TestMarksLeadToTheirIncidents: also to those that are older than what the page has of them.
func TestMarksLeadToTheirIncidents(t *testing.T) {
	job := lossyJob()
	for i := range 60 {
		at := job.StartedUnixMs + (70*time.Minute + time.Duration(i)*time.Second).Milliseconds()
		job.Incidents = append(job.Incidents, &proto.Incident{AtUnixMs: at, Task: "ps-1", Attempt: int32(i + 1), RecoveredUnixMs: at, Cause: "preempted"})
	}
	site := measured(1)
	site.Status = fixed{job}
	for _, page := range []string{"/", "/plots"} {
		text := get(t, site, page)
		m := regexp.MustCompile(`<a href="\./(\?from=[^"#]*)#incident-ps-1-0">`).FindStringSubmatch(text)
		if m == nil || strings.Contains(text, `id="incident-ps-1-0"`) || !strings.Contains(text, `#incident-ps-1-60"`) {
			t.Fatalf("a mark of %s does not lead to what is not there:\n%s", page, text)
		}
		if text := get(t, site, "/"+html.UnescapeString(m[1])); !strings.Contains(text, `id="incident-ps-1-0"`) {
			t.Errorf("the mark leads to a page without the incident:\n%s", text)
		}
	}
}

// TestTimelineOfALongLife: however long a job has run, the labels of its timeline have room.
func TestTimelineOfALongLife(t *testing.T) {
	job := lossyJob()
	for days := time.Duration(1); days < 3000; days += days/2 + 1 {
		job.EndedUnixMs = job.StartedUnixMs + (days * 24 * time.Hour).Milliseconds()
		_, axis, _ := strings.Cut(get(t, web.Site{Status: fixed{job}}, "/"), `<tr class="axis">`)
		axis, _, _ = strings.Cut(axis, "</svg>")
		if n := strings.Count(axis, "<text"); n < 1 || n > 5 {
			t.Errorf("%d days have %d labels", days, n)
		}
	}
}
