package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/web"
	"holdfast/proto"
)

type fixed struct{ *proto.JobStatus }

func (f fixed) Snapshot() (*proto.JobStatus, <-chan struct{}) { return f.JobStatus, nil }

func TestPage(t *testing.T) {
	status := &proto.JobStatus{
		Id: "application_1_0001", Name: "<b>mnist</b>", State: proto.JobState_JOB_STATE_RUNNING,
		Tasks:    []*proto.TaskStatus{{Task: "ps-1", State: proto.TaskState_TASK_STATE_RESTARTING, Why: "exit code 1", Tail: []string{"ValueError: <x>"}}},
		Timeline: []*proto.Moment{{Task: "ps-1", Kind: "lost", Text: "attempt 0: its process failed"}},
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
	if strings.Contains(text, "<b>mnist") {
		t.Error("a job's name is taken for HTML")
	}
	code, text = get("/status.json")
	got := &proto.JobStatus{}
	if err := protojson.Unmarshal([]byte(text), got); code != 200 || err != nil || got.Id != status.Id {
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
