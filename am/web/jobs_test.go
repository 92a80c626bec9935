package web_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"holdfast/am/web"
	"holdfast/proto"
)

// TestListOfJobs: what is found is shown, also where not all could be asked, and nothing of it
// is taken for HTML.
func TestListOfJobs(t *testing.T) {
	listing := web.Listing{
		Jobs: []*proto.JobSummary{
			{Id: "application_1_0002", Name: "<b>mnist</b>", State: proto.JobState_JOB_STATE_FAILED, Why: "worker-0 <failed>\nmore", Step: 12345, StartedUnixMs: 1000, EndedUnixMs: 4000},
			{Id: "application_1_0001", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000},
		},
		Omitted: 7, Note: "not <all>",
	}
	var asked web.JobQuery
	problem := errors.New("YARN <does> not answer")
	site := web.JobsSite{States: []string{"running", "failed"}, Checkpoints: "checkpoints/", List: func(_ context.Context, q web.JobQuery) (web.Listing, error) {
		asked = q
		return listing, problem
	}}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		web.JobsHandler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if p := w.Header().Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") {
			t.Errorf("the policy of %s is %q", path, p)
		}
		return w.Code, w.Body.String()
	}
	code, text := get("/?q=%22%3Ex&state=failed&everybody=on")
	for _, want := range []string{
		"&lt;b&gt;mnist", `href="jobs/application_1_0002/"`, `class="failed">failed`, "12,345", "3 s", "worker-0 &lt;failed&gt;", `href="jobs/application_1_0001/">application_1_0001</a>`,
		"7 older ones", "not &lt;all&gt;", "YARN &lt;does&gt; not answer", `value="&#34;&gt;x"`, "<option selected>failed", " checked>", `data-updates="poll"`, `href="checkpoints/"`,
	} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the list (%d) does not say %q:\n%s", code, want, text)
		}
	}
	if strings.Contains(text, "more") {
		t.Errorf("a reason has more than a line:\n%s", text)
	}
	if want := (web.JobQuery{Text: `">x`, State: "failed", Everybody: true}); asked != want {
		t.Errorf("it asks for %+v, want %+v", asked, want)
	}
	if bad := regexp.MustCompile(`<style|<script>| style=| on[a-z]+=|(href|src|action)="(/|[a-z]+://)`).FindString(text); bad != "" {
		t.Errorf("the page has %q", bad)
	}
	if code, text := get("/jobs.json"); code != http.StatusServiceUnavailable || !strings.Contains(text, `"kind":"unreachable"`) {
		t.Errorf("where not all could be asked, jobs.json answers %d: %s", code, text)
	}

	problem = fmt.Errorf("list /shared: %w", fs.ErrPermission)
	if code, text := get("/jobs.json"); code != http.StatusForbidden || !strings.Contains(text, `"kind":"denied"`) {
		t.Errorf("where a directory may not be read, jobs.json answers %d: %s", code, text)
	}
	if code, text := get("/jobs.json?state=fialed"); code != http.StatusBadRequest || !strings.Contains(text, `"kind":"usage"`) || !strings.Contains(text, "fialed") {
		t.Errorf("of a state that is none, jobs.json answers %d: %s", code, text)
	}

	problem, listing = nil, web.Listing{}
	if _, text := get("/"); !strings.Contains(text, "There is no job yet") {
		t.Errorf("without jobs:\n%s", text)
	}
	if _, text := get("/?q=x"); !strings.Contains(text, "No job matches") {
		t.Errorf("without a job that matches:\n%s", text)
	}
	if code, text := get("/jobs.json"); code != http.StatusOK || !strings.Contains(text, `"json_version"`) {
		t.Errorf("jobs.json answers %d: %s", code, text)
	}
}
