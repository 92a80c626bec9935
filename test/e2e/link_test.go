package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestTheLinkAfterTheEnd: when its application master is gone, a job's link at the
// ResourceManager leads to a page that answers: YARN's own, which has the reason, or the one
// that was given for ended jobs.
func TestTheLinkAfterTheEnd(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	history := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the history at "+r.URL.Path) // the reader went away
	}))
	defer history.Close()
	fails := []string{"--worker", "1", "--worker-memory", "256m", "--restarts", "0", "--", "sh", "-c", "echo about to fail; exit 3"}
	w := where{c}
	for name, flags := range map[string][]string{"YARN's page": nil, "a history": {"--history-url", history.URL + "/jobs"}} {
		t.Run(name, func(t *testing.T) {
			j := w.start(t, "", append(flags, fails...)...)
			s := j.end(long, proto.JobState_JOB_STATE_FAILED)
			d := doors{t: t, c: c}
			for end := time.Now().Add(long); !d.application(j.id).State.Done(); time.Sleep(100 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the ResourceManager does not note the end")
				}
			}
			answer, err := http.Get("http://" + c.RMWeb() + "/proxy/" + j.id + "/")
			must(t, err)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			must(t, err)
			want := "the history at /jobs/" + j.id
			if flags == nil {
				want, _, _ = strings.Cut(s.Why, "\n")
			}
			if answer.StatusCode != http.StatusOK || want == "" || !strings.Contains(string(text), want) {
				t.Errorf("the link leads to %s, which answers %s without %q:\n%s", answer.Request.URL, answer.Status, want, text)
			}
			t.Logf("the link leads to %s", answer.Request.URL)
		})
	}
}
