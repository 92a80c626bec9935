package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"holdfast/am/web"
	"holdfast/proto"
)

type fixed struct{ *proto.JobStatus }

func (f fixed) Snapshot() (*proto.JobStatus, <-chan struct{}) { return f.JobStatus, nil }

func TestPage(t *testing.T) {
	status := &proto.JobStatus{
		Id: "application_1_0001", Name: "<b>mnist</b>", State: proto.JobState_JOB_STATE_RUNNING,
		Tasks: []*proto.TaskStatus{{Task: "ps-1", State: proto.TaskState_TASK_STATE_RESTARTING, Why: "exit code 1", Tail: []string{"ValueError: <x>"}},
			{Task: "w-0", State: proto.TaskState_TASK_STATE_RUNNING, Attempt: 1, Why: "killed by SIGKILL", Tail: []string{"what attempt 0 wrote"}}},
		Incidents: []*proto.Incident{{Task: "w-0", Attempt: 0, Evidence: "killed by SIGKILL"}},
		Events:    []*proto.JobEvent{{Task: "ps-1", Kind: "lost", Text: "attempt 0: its process failed"}},
	}
	s := httptest.NewServer(web.Handler(fixed{status}))
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
	for _, want := range []string{"&lt;b&gt;mnist", "running", "ps-1", "restarting", "ValueError: &lt;x&gt;", "attempt 0: its process failed"} {
		if code != 200 || !strings.Contains(text, want) {
			t.Errorf("the page (%d) does not say %q:\n%s", code, want, text)
		}
	}
	if !strings.Contains(text, "<td>attempt 0: killed by SIGKILL") || strings.Contains(text, "what attempt 0 wrote") {
		t.Errorf("an earlier attempt's end is shown as that of the one that runs:\n%s", text)
	}
	if strings.Contains(text, "<b>mnist") {
		t.Error("a job's name is taken for HTML")
	}
	code, text = get("/status.json")
	got := &proto.JobStatus{}
	if err := proto.FromJSON([]byte(text), got); code != 200 || err != nil || got.Id != status.Id {
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

// TestPageOfManyTasks: of a large job, the page says at once what does not run.
func TestPageOfManyTasks(t *testing.T) {
	const many = 10000
	status := &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}
	for i := range many {
		status.Tasks = append(status.Tasks, &proto.TaskStatus{
			Task: fmt.Sprintf("worker-%d", i), Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING,
			Node: fmt.Sprintf("node-%d.example.com", i%500), RealAddress: "10.1.2.3:20001", RssBytes: 500e6,
		})
		status.Events = append(status.Events, &proto.JobEvent{Task: fmt.Sprintf("worker-%d", i), Kind: "started", Text: fmt.Sprintf("moment %d", i)})
	}
	lost := status.Tasks[many-1]
	lost.State, lost.Tail = proto.TaskState_TASK_STATE_RESTARTING, []string{"it went wrong"}
	w := httptest.NewRecorder()
	web.Handler(fixed{status}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	text := w.Body.String()
	for _, want := range []string{"worker: 9999 running, 1 restarting", "worker-9999", "it went wrong", "200 of 10000 tasks", "status.json", "moment 9999"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if len(text) > 100<<10 {
		t.Errorf("the page, which a browser gets every few seconds, has %d bytes", len(text))
	}
}
