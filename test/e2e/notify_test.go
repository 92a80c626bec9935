package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// TestANotifiedServerThatHangs: YARN is told of a job's end all the same, and of no other
// end than the job had.
func TestANotifiedServerThatHangs(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	asked, release := make(chan *proto.Notification, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n := &proto.Notification{}
		text, err := io.ReadAll(r.Body)
		if err != nil || proto.FromJSON(text, n) != nil {
			t.Errorf("posted was %s (%v)", text, err)
		}
		asked <- n
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	j := where{c}.start(t, "", "--worker", "1", "--worker-memory", "256m", "--notify", server.URL+"/T0KEN", "--", "true")
	j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	if n := <-asked; n.Id != j.id || n.Event != "ended" || n.State != proto.JobState_JOB_STATE_SUCCEEDED {
		t.Errorf("posted was %v", n)
	}
	d := doors{t: t, c: c}
	report := d.application(j.id)
	for end := time.Now().Add(long); !report.State.Done(); report = d.application(j.id) {
		if time.Now().After(end) {
			t.Fatal("the ResourceManager does not note the end")
		}
		time.Sleep(100 * time.Millisecond)
	}
	if report.Final != yarn.FinalSucceeded {
		t.Errorf("YARN has noted %v", report)
	}
	for end := time.Now().Add(long); ; time.Sleep(200 * time.Millisecond) { // the application master stays for a few seconds
		out, errs, code := j.w.call(t.Context(), "", "logs", j.id, "am")
		if strings.Contains(out, "T0KEN") {
			t.Errorf("a secret is told:\n%s", out)
		}
		if strings.Contains(out, "was not notified that the job ended") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("logs ended with %d:\n%s%s", code, out, errs)
		}
	}
}
