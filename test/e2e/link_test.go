package e2e

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/asuser"
)

// TestLongTheLinkAfterTheEnd: when its application master is gone, a job's link at the
// ResourceManager leads to a page that answers: YARN's own, which has the reason, or the one
// that was given for ended jobs, as that of yarn-submit ui.
func TestLongTheLinkAfterTheEnd(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	user := asuser.Caller{Submit: submit, ConfDir: c.ConfDir(), Home: os.Getenv("HOLDFAST_HOME")}
	address, stop, err := user.UI(t.Context())
	must(t, err)
	defer stop()
	ui, err := url.Parse(address)
	must(t, err)
	jar, err := cookiejar.New(nil)
	must(t, err)
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	get := func(address string) (at, text string) {
		t.Helper()
		answer, err := browser.Get(address)
		must(t, err)
		defer answer.Body.Close()
		all, err := io.ReadAll(answer.Body)
		must(t, err)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s, which answers %s:\n%s", address, answer.Request.URL, answer.Status, all)
		}
		return answer.Request.URL.String(), string(all)
	}
	get(address) // from now on the browser has the cookie
	site := "http://" + ui.Host
	link := func(j *job) string {
		d := doors{t: t, c: c}
		for end := time.Now().Add(long); !d.application(j.id).State.Done(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the ResourceManager does not note the end")
			}
		}
		return "http://" + c.RMWeb() + "/proxy/" + j.id + "/"
	}
	says := func(t *testing.T, text string, want ...string) {
		t.Helper()
		for _, s := range want {
			if !strings.Contains(text, s) {
				t.Errorf("%q is missing in:\n%s", s, text)
			}
		}
	}

	t.Run("YARN's page", func(t *testing.T) {
		j := w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--restarts", "0", "--", "sh", "-c", "echo about to fail; exit 3")
		s := j.end(long, proto.JobState_JOB_STATE_FAILED)
		at, text := get(link(j))
		why, _, _ := strings.Cut(s.Why, "\n")
		if why == "" {
			t.Error("the job says no reason")
		}
		says(t, text, why)
		if !strings.Contains(at, c.RMWeb()[strings.LastIndexByte(c.RMWeb(), ':'):]+"/cluster/app/"+j.id) {
			t.Errorf("the link leads to %s", at)
		}
	})
	t.Run("ui", func(t *testing.T) {
		j := w.start(t, "", "--name", "lossy", "--history-url", site+"/jobs", "--worker", "2", "--worker-memory", "256m", "--env", "API_TOKEN=k1", "--checkpoint", "./logs="+c.HDFS()+"/lossy",
			"--", "sh", "-c", `if [ {attempt} = 0 ]; then echo "step 3"; exec sleep 600; fi; echo "step 7"; until [ -e logs/end ]; do sleep 0.2; done
if [ {index} = 1 ]; then mkdir logs/step-7; echo x > logs/step-7/data; echo > logs/step-7/COMMITTED; fi; echo "all done"`)
		j.until(long, "all to run", running)
		j.said(long, "worker-1", "(step 3)")
		j.killContainer("worker-0")
		j.killContainer("worker-1")
		j.until(long, "all to be back", func(s *proto.JobStatus) bool {
			return running(s) && s.Tasks[0].Step == 7 && s.Tasks[1].Step == 7
		})
		page := site + "/jobs/" + j.id + "/"
		_, text := get(page)
		says(t, text, "lossy", `class="state running"`, `data-updates="poll"`, `id="incident-worker-1-0"`)
		_, text = get(site + "/?state=running")
		says(t, text, j.id, "lossy", ">root.default<")
		if strings.Contains(text, "is starting") {
			t.Errorf("a job whose tasks run is said to start:\n%s", text)
		}

		_, err := c.Hadoop(t.Context(), "fs", "-touchz", "/lossy/end")
		must(t, err)
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		at, text := get(link(j))
		if at != page {
			t.Errorf("the link leads to %s, want %s", at, page)
		}
		says(t, text, "lossy", `class="state succeeded"`, `data-updates=""`, `id="incident-worker-1-0"`, "back after")
		_, text = get(site + "/")
		says(t, text, j.id, "succeeded")
		_, text = get(page + "configuration")
		says(t, text, "API_TOKEN", "(hidden)", c.HDFS()+"/lossy")
		_, text = get(page + "task?task=worker-1")
		says(t, text, "all done", "attempt 0")
		_, text = get(page + "log?task=worker-1&attempt=0")
		says(t, text, "step 3")
		_, text = get(page + "checkpoints")
		says(t, text, c.HDFS()+"/lossy", ">7</a>", "sealed", j.id)
		_, text = get(page + "samples.csv?name=step")
		says(t, text, ",7")

		// One that the ResourceManager does not know, as after it has forgotten its jobs.
		forgotten := "application_1234567890123_0042"
		jobs := "/user/" + j.status().User + "/.holdfast/jobs/"
		_, err = c.Hadoop(t.Context(), "fs", "-cp", jobs+j.id, jobs+forgotten)
		must(t, err)
		_, text = get(site + "/?q=" + forgotten)
		says(t, text, forgotten, "lossy", "succeeded")
		_, text = get(site + "/jobs/" + forgotten + "/task?task=worker-1")
		says(t, text, "all done")

		// Another user sees of a shared directory what HDFS lets them read.
		_, err = c.Hadoop(t.Context(), "fs", "-mkdir", "-p", "/history")
		must(t, err)
		closed := "application_1234567890123_0043"
		for _, id := range []string{forgotten, closed} {
			_, err = c.Hadoop(t.Context(), "fs", "-cp", jobs+j.id, "/history/"+id)
			must(t, err)
		}
		_, err = c.Hadoop(t.Context(), "fs", "-chmod", "-R", "go+rX", "/history/"+forgotten)
		must(t, err)
		_, err = c.Hadoop(t.Context(), "fs", "-chmod", "700", "/history/"+closed)
		must(t, err)
		mallory := user
		mallory.Env = []string{"HADOOP_USER_NAME=mallory"}
		address, stop, err := mallory.UI(t.Context(), "--history-dir", c.HDFS()+"/history")
		must(t, err)
		defer stop()
		theirs, err := url.Parse(address)
		must(t, err)
		_, text = get(address)
		says(t, text, forgotten, "lossy", c.HDFS()+"/history")
		if strings.Contains(text, closed) {
			t.Errorf("a job whose directory is closed is listed:\n%s", text)
		}
		_, text = get("http://" + theirs.Host + "/jobs/" + forgotten + "/task?task=worker-1")
		says(t, text, "all done")
		answer, err := browser.Get("http://" + theirs.Host + "/jobs/" + closed + "/")
		must(t, err)
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("a job whose directory is closed answers %s", answer.Status)
		}
	})
}
