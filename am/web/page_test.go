package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/status"
	"holdfast/am/status/samples"
	"holdfast/am/web"
	"holdfast/proto"
)

type fixed struct{ *proto.JobStatus }

func (f fixed) Snapshot() (*proto.JobStatus, <-chan struct{}) { return f.JobStatus, nil }

func TestPage(t *testing.T) {
	job := &proto.JobStatus{
		Id: "application_1_0001", Name: "<b>mnist</b>", State: proto.JobState_JOB_STATE_RUNNING,
		Tasks: []*proto.TaskStatus{{Task: "ps-1", State: proto.TaskState_TASK_STATE_RESTARTING, Why: "exit code 1", Tail: []string{"ValueError: <x>"}},
			{Task: "w-0", State: proto.TaskState_TASK_STATE_RUNNING, Attempt: 1, Why: "killed by SIGKILL", Tail: []string{"what attempt 0 wrote"}},
			{Task: "w-1", State: proto.TaskState_TASK_STATE_SUCCEEDED, Attempt: 1, Tail: []string{"what attempt 0 wrote"}}},
		Incidents:    []*proto.Incident{{Task: "w-0", Attempt: 0, Evidence: "killed by SIGKILL"}, {Task: "w-1", Attempt: 0, Evidence: "killed by SIGKILL"}},
		Events:       []*proto.JobEvent{{Task: "ps-1", Kind: "lost", Text: "attempt 0: its process failed"}},
		Scalars:      []*proto.ScalarValue{{Name: "<loss>", Value: 0.123456}},
		AvoidedNodes: []*proto.AvoidedNode{{Node: "n1", Why: "ps-1: no /dev/fuse"}},
	}
	s := httptest.NewServer(web.Handler(web.Site{Status: fixed{job}}))
	defer s.Close()
	get := func(path string) (int, string) {
		r, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	code, text := get("/")
	for _, want := range []string{"&lt;b&gt;mnist", "running", "ps-1", "restarting", "ValueError: &lt;x&gt;", "attempt 0: its process failed", "<dt>&lt;loss&gt;<dd>0.1235", "<td>n1<td class=\"soft\">until it is in service again<td>ps-1: no /dev/fuse"} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("the page (%d) does not say %q:\n%s", code, want, text)
		}
	}
	incidents, tasks, _ := strings.Cut(text, `id="tasks"`)
	if !strings.Contains(incidents, "what attempt 0 wrote") {
		t.Errorf("the incident has not the last lines of the attempt that was lost:\n%s", text)
	}
	if !strings.Contains(tasks, ">attempt 0: killed by SIGKILL") || strings.Contains(tasks, "what attempt 0 wrote") {
		t.Errorf("an earlier attempt's end is shown as that of the one that runs:\n%s", text)
	}
	if strings.Contains(text, "<b>mnist") {
		t.Error("a job's name is taken for HTML")
	}
	code, text = get("/status.json")
	got := &proto.JobStatus{}
	if err := proto.FromJSON([]byte(text), got); code != 200 || err != nil || got.Id != job.Id {
		t.Errorf("status.json: %d %v %s", code, err, text)
	}
	if code, _ := get("/other"); code != 404 {
		t.Errorf("an unknown page answers %d", code)
	}
	r, err := http.Post(s.URL+"/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST answers %d", r.StatusCode)
	}
}

// TestGenerationsOnThePage: with how many tasks the job works, without which since when and
// why, and what each generation has done, the newest first.
func TestGenerationsOnThePage(t *testing.T) {
	job := &proto.JobStatus{
		Id: "application_1_0001", State: proto.JobState_JOB_STATE_RUNNING,
		Tasks: []*proto.TaskStatus{{Task: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING},
			{Task: "worker-1", State: proto.TaskState_TASK_STATE_PARKED, ParkedSinceUnixMs: 7_000, ParkedCause: "container preempted", Why: "the others work without it: container preempted"}},
		Generations: []*proto.Generation{
			{Number: 3, StartedUnixMs: 1000, EndedUnixMs: 6000, Tasks: 2, Of: 2, Least: 1, FirstStep: 10, LastStep: 30, StepsPerSecond: 4},
			{Number: 4, StartedUnixMs: 7000, Tasks: 1, Of: 2, Least: 1, Parked: []string{"worker-1"}},
		},
	}
	s := httptest.NewServer(web.Handler(web.Site{Status: fixed{job}}))
	defer s.Close()
	page := func() string {
		r, err := http.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%d, %v", r.StatusCode, err)
		}
		return string(text)
	}
	text := page()
	for _, want := range []string{
		`works with 1 of 2 tasks (at least 1): worker-1 parked since <time datetime="1970-01-01T00:00:07Z">`, `</time>, container preempted</p>`,
		"generation 3<td", "2 of 2 tasks<td>steps 10 to 30<td>", "1 of 2 tasks<td>no step<td><td>without worker-1", ">the others work without it: container preempted",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q:\n%s", want, text)
		}
	}
	if strings.Index(text, "generation 4<td") > strings.Index(text, "generation 3<td") {
		t.Error("the older generation is first")
	}
	job.Generations, job.Tasks = job.Generations[:1], job.Tasks[:1]
	if text := page(); strings.Contains(text, "generation 3<td") || strings.Contains(text, "works with") {
		t.Errorf("a job of one generation, which works with all, tells of more:\n%s", text)
	}
}

// TestPageOfManyTasks: of a large job, the page says at once what does not run, and does
// not grow without bound.
func TestPageOfManyTasks(t *testing.T) {
	status := largeJob(10000)
	lost := status.Tasks[9999]
	lost.State, lost.Tail = proto.TaskState_TASK_STATE_RESTARTING, []string{"it went wrong"}
	text := get(t, web.Site{Status: fixed{status}}, "/")
	for _, want := range []string{"9999 <small>running", "1 <small>restarting", "worker-9999", "it went wrong", "1000 of 10000 tasks", "status.json", "moment 9999"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if first, second := strings.Index(text, "task=worker-9999"), strings.Index(text, "task=worker-0\""); first < 0 || first > second {
		t.Error("the task that does not run is not the first")
	}
	if len(text) > 300<<10 {
		t.Errorf("the page has %d bytes", len(text))
	}
}

func largeJob(n int) *proto.JobStatus {
	status := &proto.JobStatus{Name: "large", State: proto.JobState_JOB_STATE_RUNNING}
	for i := range n {
		status.Tasks = append(status.Tasks, &proto.TaskStatus{
			Task: fmt.Sprintf("worker-%d", i), Role: "worker", Index: int32(i), State: proto.TaskState_TASK_STATE_RUNNING, Step: 12345,
			Node: fmt.Sprintf("node-%d.example.com", i%500), RealAddress: "10.1.2.3:20001", RssBytes: 500e6 + int64(i)<<20,
			MemoryLimitBytes: 500 << 20, MemoryPeakBytes: 400 << 20, CpuCores: 1.25, Vcores: 2,
			SentBytesPerSecond: 123 << 20, ReceivedBytesPerSecond: 234 << 20,
			Gpus: 2, GpuPercent: 87, GpuMemoryBytes: 101 << 30, GpuMemoryLimitBytes: 159 << 30,
			Line: fmt.Sprintf("step %d ", i) + strings.Repeat("x", 150), LineAtUnixMs: time.Now().UnixMilli() - 3000,
		})
		status.Events = append(status.Events, &proto.JobEvent{AtUnixMs: 1, Task: fmt.Sprintf("worker-%d", i), Kind: "started", Text: fmt.Sprintf("moment %d", i)})
	}
	return status
}

// get returns what a site answers to a request that must succeed.
func get(t *testing.T, site web.Site, address string) string {
	t.Helper()
	w := httptest.NewRecorder()
	web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%s answers %d: %s", address, w.Code, w.Body)
	}
	return w.Body.String()
}

// TestTasksAreSelectedAndOrdered: by the address, so that no script is needed.
func TestTasksAreSelectedAndOrdered(t *testing.T) {
	status := largeJob(12)
	status.Tasks[3].State, status.Tasks[3].Why = proto.TaskState_TASK_STATE_WAITING, "No room"
	status.Tasks = append(status.Tasks, &proto.TaskStatus{Task: "ps-0", Role: "ps", State: proto.TaskState_TASK_STATE_RUNNING, Node: "other"})
	names := regexp.MustCompile(`<td><a href="task\?task=([a-z0-9-]+)"`)
	for query, want := range map[string]string{
		"?q=OTHER": "ps-0", "?q=room": "worker-3", "?state=waiting": "worker-3", "?role=ps": "ps-0", "?q=none": "",
		"?sort=task&q=worker-1": "worker-1 worker-10 worker-11", "?sort=-task&q=worker-1": "worker-11 worker-10 worker-1",
		"?sort=-memory&q=worker-1": "worker-11 worker-10 worker-1", "?sort=unknown&q=worker-1": "worker-1 worker-10 worker-11",
	} {
		var got []string
		for _, m := range names.FindAllStringSubmatch(get(t, web.Site{Status: fixed{status}}, "/"+query), -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s shows %v, want %s", query, got, want)
		}
	}
	if text := get(t, web.Site{Status: fixed{status}}, "/?sort=-task&q=%22%3E%3Cscript%3E"); strings.Contains(text, "<script>") || !strings.Contains(text, `aria-sort="descending"`) {
		t.Errorf("what is searched for is taken for HTML, or the order is not said:\n%s", text)
	}
}

// TestMemoryAgainstItsLimit: a task that is about to exceed its memory stands out.
func TestMemoryAgainstItsLimit(t *testing.T) {
	status := largeJob(1)
	status.Tasks[0].MemoryPeakBytes = 480 << 20
	if text := get(t, web.Site{Status: fixed{status}}, "/"); !strings.Contains(text, "<td>477 of 500 MiB<small class=\"failed\">peak 96%") {
		t.Errorf("the limit is missing:\n%s", text)
	}
}

// TestStragglersStandOut: one is named above all tasks, and is the first of them, with what
// differs; its own page has that, too.
func TestStragglersStandOut(t *testing.T) {
	status := largeJob(3)
	share := 0.97
	k := status.Tasks[2]
	k.Step, k.StepSeconds, k.WorkShare, k.Pressure = 40, 2, &share, &proto.Pressure{Cpu: 0.81, Io: 0.02}
	k.Straggler = &proto.Straggler{SinceUnixMs: 1764079331000, By: proto.ByStep, Value: 2, Median: 0.5, Differs: []string{"where it is, processes wait for a CPU in 81% of the time, and where the others are in 3%"}}
	site := web.Site{Status: fixed{status}}
	text := get(t, site, "/")
	slow := `slower than the others since 14:02:11 UTC: a step takes 2.0 s, and 500 ms in the median (4.0 times); where it is, processes wait for a CPU in 81% of the time, and where the others are in 3%`
	for _, want := range []string{
		`<p class="straggler">` + k.Task + ` is slower than the others of its role</p>`, `<td>40<small>2.0 s each</small>`, `<div class="straggler">` + slow + `</div>`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	_, rows, _ := strings.Cut(text, "<tbody>")
	if first := `task?task=` + k.Task; !strings.Contains(rows[:200], first) {
		t.Errorf("it is not the first:\n%s", rows[:200])
	}
	text = get(t, site, "/task?task="+k.Task)
	for _, want := range []string{`<dt>Step<dd>40 <span class="soft">2.0 s each</span>`, `<dt>At work<dd>97% of the time`, slow, `<dt>Waiting on its node<dd>for a CPU 81%, memory 0%, a disk 2% of the last minute`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
}

// TestNetworkAndGPUs: the table has columns of them where any task has some, and can be ordered
// by them.
func TestNetworkAndGPUs(t *testing.T) {
	status := lossyJob()
	status.Tasks = append(status.Tasks, &proto.TaskStatus{Task: "worker-9", Role: "worker", State: status.Tasks[0].State})
	if text := get(t, web.Site{Status: fixed{status}}, "/"); strings.Contains(text, "Network</a>") || strings.Contains(text, "GPU</a>") {
		t.Error("the table has columns of what no task has")
	}
	k := status.Tasks[1]
	k.SentBytesPerSecond, k.ReceivedBytesPerSecond = 3000, 12<<20
	k.Gpus, k.GpuPercent, k.GpuMemoryBytes, k.GpuMemoryLimitBytes = 2, 87.4, 60<<30, 160<<30
	text := get(t, web.Site{Status: fixed{status}}, "/")
	for _, want := range []string{`<th class="network"><a href="?sort=-network#tasks">Network</a>`, `<td>↓12 MiB/s ↑2.9 KiB/s<td>87%, 60 of 160 GiB<td>`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if text := get(t, web.Site{Status: fixed{status}}, "/?sort=-gpu"); strings.Index(text, ">"+k.Task+"</a>") > strings.Index(text, ">"+status.Tasks[0].Task+"</a>") {
		t.Error("the tasks are not ordered by their GPUs")
	}
}

// TestWhatATaskSaysLast: of one that runs, beside why it was lost before, and no longer than
// there is room for.
func TestWhatATaskSaysLast(t *testing.T) {
	status := largeJob(2)
	status.Tasks[0].Why, status.Tasks[0].Line = "an earlier reason", "<b>step 7"
	status.Tasks[1].State = proto.TaskState_TASK_STATE_FAILED
	text := get(t, web.Site{Status: fixed{status}}, "/")
	if !strings.Contains(text, "an earlier reason<div>&lt;b&gt;step 7<small>3 s ago</small>") || strings.Contains(text, "step 1 xxx") {
		t.Errorf("the lines of tasks are shown otherwise:\n%s", text)
	}
	if !strings.Contains(text, `<td>1.2 of 2<td>`) {
		t.Errorf("the CPU that tasks use is not shown:\n%s", text)
	}
	if text = get(t, web.Site{Status: fixed{largeJob(1000)}}, "/"); strings.Count(text, "…") != 100 || len(text) > 300<<10 {
		t.Errorf("of 1,000 tasks, %d lines are cut, in %d bytes", strings.Count(text, "…"), len(text))
	}
}

// TestTimeLeft: only where the program says how many steps it makes, and all tasks run.
func TestTimeLeft(t *testing.T) {
	status := largeJob(2)
	status.Step, status.StepsPerSecond = 100, 2
	if text := get(t, web.Site{Status: fixed{status}}, "/"); strings.Contains(text, "Time left") {
		t.Error("a time is guessed")
	}
	status.TotalSteps = 400
	if text := get(t, web.Site{Status: fixed{status}}, "/"); !strings.Contains(text, "100 <small>of 400, 25%</small>") || !strings.Contains(text, "<dt>Time left<dd>2m 30s") {
		t.Errorf("the time that is left is missing:\n%s", text)
	}
	status.Tasks[1].State = proto.TaskState_TASK_STATE_RESTARTING
	if text := get(t, web.Site{Status: fixed{status}}, "/"); strings.Contains(text, "Time left") {
		t.Error("a time is told while a task does not run")
	}
}

// TestNothingIsInline: the policy forbids scripts and styles in the page, and the page
// refers to nothing outside of its directory.
func TestNothingIsInline(t *testing.T) {
	w := httptest.NewRecorder()
	web.Handler(web.Site{Status: fixed{largeJob(2)}}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
		t.Errorf("the policy is %q", p)
	}
	if bad := regexp.MustCompile(`<style|<script>| style=| on[a-z]+=|(href|src|action)="(/|[a-z]+://)`).FindString(w.Body.String()); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	for path, kind := range map[string]string{"/page.css": "text/css", "/page.js": "text/javascript"} {
		w := httptest.NewRecorder()
		web.Handler(web.Site{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s answers %d as %s", path, w.Code, w.Header().Get("Content-Type"))
		}
	}
}

// TestHowPagesAreUpdated: by events, by asking through a proxy, or not at all; and without
// a script by loading the page anew.
func TestHowPagesAreUpdated(t *testing.T) {
	running, ended := largeJob(1), largeJob(1)
	ended.State = proto.JobState_JOB_STATE_SUCCEEDED
	for _, c := range []struct {
		site web.Site
		want string
	}{
		{web.Site{Status: changing{running, nil}}, "events"},
		{web.Site{Status: changing{running, nil}, Polled: true}, "poll"},
		{web.Site{Status: changing{ended, nil}}, ""},
		{web.Site{Status: fixed{running}}, ""},
	} {
		text := get(t, c.site, "/")
		if !strings.Contains(text, `data-updates="`+c.want+`"`) || strings.Contains(text, `<noscript><meta http-equiv="refresh"`) != (c.want != "") {
			t.Errorf("want updates by %q:\n%.900s", c.want, text)
		}
	}
}

// changing is a status that may change.
type changing struct {
	*proto.JobStatus
	next chan struct{}
}

func (c changing) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	if c.next == nil {
		return c.JobStatus, make(chan struct{})
	}
	return c.JobStatus, c.next
}

// TestChanges: a change is an event, and the last one says that there will be no more.
func TestChanges(t *testing.T) {
	store := status.New(largeJob(1), samples.New("", time.Now(), nil), nil, 0)
	s := httptest.NewServer(web.Handler(web.Site{Status: store}))
	defer s.Close()
	r, err := http.Get(s.URL + "/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	wait := func(want string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == want {
				return
			}
		}
		t.Fatalf("the stream ends (%v) without %q", lines.Err(), want)
	}
	wait("retry: 3000")
	// Changes during the pause after an event are told by the next one.
	stop := make(chan struct{})
	go func() {
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				store.Update(func(*proto.JobStatus) {})
			}
		}
	}()
	defer close(stop)
	wait("event: change")
	store.Update(func(s *proto.JobStatus) { s.State = proto.JobState_JOB_STATE_FAILED })
	wait("event: end")
	for lines.Scan() {
		if lines.Text() != "" && lines.Text() != "data: " {
			t.Errorf("after the end there is %q", lines.Text())
		}
	}
}

// TestLivePartsAreThere: the script replaces parts of the page that it has, so those that
// fill only later are in it from the beginning.
func TestLivePartsAreThere(t *testing.T) {
	parts := regexp.MustCompile(`id="([a-z]+)"[^>]* data-live`)
	fresh, lossy := largeJob(1), lossyJob()
	fresh.StartedUnixMs, fresh.Events = lossy.StartedUnixMs, nil
	want := parts.FindAllStringSubmatch(get(t, web.Site{Status: fixed{lossy}}, "/"), -1)
	got := parts.FindAllStringSubmatch(get(t, web.Site{Status: fixed{fresh}}, "/"), -1)
	if len(want) < 5 || !reflect.DeepEqual(got, want) {
		t.Errorf("a job that has begun has the parts %v, and one that had a loss %v", got, want)
	}
}
