package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/proto"
)

// TestUI: the pages of a job that has ended, in a browser that has come with the token.
func TestUI(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--name", "lossy", "--worker", "1", "--env", "API_TOKEN=k1", "--checkpoint", "./out=ck", "--", "sh", "-c",
		`mkdir -p out/step-5; touch out/step-5/data out/step-5/COMMITTED; if [ {attempt} = 0 ]; then echo "attempt one"; echo "step 3"; exec sleep 1000; fi; echo "step 7"; echo "the end of it"`)
	p.until(id, "a step", func(s *proto.JobStatus) bool { return s.Step == 3 })
	p.call("kill", id, "worker-0")
	p.until(id, "the end", func(s *proto.JobStatus) bool { return s.State.Done() })

	write(t, filepath.Join(p.dir, "elsewhere/step-9/data"), "x")
	write(t, filepath.Join(p.dir, "elsewhere/step-9/COMMITTED"), "")
	u := p.ui("--checkpoint", "./elsewhere")
	for name, c := range map[string]struct {
		path, host string
		token      bool
	}{
		"without the token":   {"/", "", false},
		"a job's page":        {"/jobs/" + id + "/", "", false},
		"a style":             {"/page.css", "", false},
		"another host":        {"/", "rebound.example.com", true},
		"another host's page": {"/jobs/" + id + "/", "rebound.example.com:80", true},
	} {
		path := c.path
		if c.token {
			path += "?" + u.Query().Encode()
		}
		if code, text := u.ask(t, http.DefaultClient, path, c.host); code != http.StatusForbidden || strings.Contains(text, "lossy") {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
	if code, _ := u.ask(t, http.DefaultClient, "/?token=guess", ""); code != http.StatusForbidden {
		t.Errorf("a wrong token is answered %d", code)
	}

	browser := u.browser(t)
	if code, _ := u.ask(t, browser, "/", "rebound.example.com"); code != http.StatusForbidden {
		t.Errorf("with the cookie and another host: %d", code)
	}
	for path, want := range map[string][]string{
		"/":                                   {"lossy", `href="jobs/` + id + `/"`, "succeeded", "local", `href="checkpoints/"`},
		"/?q=LOSS&state=succeeded":            {"lossy"},
		"/jobs.json":                          {`"json_version":1`, id},
		"/jobs/" + id:                         {"lossy", "succeeded", "incident-worker-0-0", `href="../../"`},
		"/jobs/" + id + "/configuration":      {"API_TOKEN", "(hidden)"},
		"/jobs/" + id + "/task?task=worker-0": {"the end of it", "restart requested"},
		"/jobs/" + id + "/log?task=worker-0&attempt=0": {"attempt one"},
		"/jobs/" + id + "/status.json":                 {`"state":"succeeded"`},
		"/jobs/" + id + "/page.css":                    {":root"},
		"/jobs/" + id + "/plots":                       {"<svg"},
		"/jobs/" + id + "/samples.csv?name=step":       {",7"},
		"/jobs/" + id + "/checkpoints":                 {filepath.Join(p.dir, "ck"), ">5</a>", "sealed"},
		"/jobs/" + id + "/checkpoint?dir=0&at=step-5":  {"step-5/data"},
		"/checkpoints":                                 {filepath.Join(p.dir, "elsewhere"), ">9</a>", "complete", `href="../"`},
		"/checkpoints/checkpoints.json":                {`"name":"step-9"`},
	} {
		code, text := u.ask(t, browser, path, "")
		if code != http.StatusOK {
			t.Errorf("%s answers %d: %s", path, code, text)
			continue
		}
		contains(t, strings.ReplaceAll(text, `": `, `":`), want...)
	}
	// What HDFS says comes a moment later; then nothing of an ended job changes any longer.
	p.until(id, "a page that is not updated", func(*proto.JobStatus) bool {
		_, text := u.ask(t, browser, "/jobs/"+id+"/", "")
		return strings.Contains(text, `data-updates=""`) && strings.Contains(text, `">step 5</a>, <span class="`)
	})
	if _, text := u.ask(t, browser, "/?q=other", ""); strings.Contains(text, "lossy") {
		t.Errorf("the filter does not apply:\n%s", text)
	}
	for path, says := range map[string]string{
		"/jobs/local-none/": "there is no job", "/jobs/lossy/": "there is no job", "/jobs/application_1_0001/": "HADOOP_CONF_DIR", "/jobs/..%2f..%2fetc/": "there is no job",
	} {
		if code, text := u.ask(t, browser, path, ""); code != http.StatusNotFound || !strings.Contains(text, says) {
			t.Errorf("%s answers %d: %s", path, code, text)
		}
	}
	r, err := browser.Post(u.String(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST answers %s", r.Status)
	}
	u.end(t)
}

// TestUIOfARunningJob: a job that runs is shown as it is now, and its page goes on.
func TestUIOfARunningJob(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--name", "endless", "--worker", "1", "--", "sh", "-c", `i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.1; done`)
	u := p.ui()
	browser := u.browser(t)
	p.until(id, "steps to be measured", func(*proto.JobStatus) bool {
		_, text := u.ask(t, browser, "/jobs/"+id+"/samples.json?name=step", "")
		return strings.Contains(text, `"series":[{`)
	})
	code, text := u.ask(t, browser, "/jobs/"+id+"/", "")
	contains(t, text, "endless", "running", `data-updates="poll"`)
	if code != http.StatusOK {
		t.Errorf("the page answers %d", code)
	}
	p.call("kill", id)
	code, text = u.ask(t, browser, "/jobs/"+id+"/", "")
	contains(t, text, "killed", `data-updates=""`)
	if code != http.StatusOK {
		t.Errorf("after the end the page answers %d", code)
	}
}

// TestUIOfKeptJobs: what was copied of a job's directory elsewhere is shown like a job.
func TestUIOfKeptJobs(t *testing.T) {
	p := newPlace(t)
	out, errs, code := p.call("run", "--local", "--name", "kept", "--worker", "1", "--", "sh", "-c", "echo step 4; echo the end of it")
	if code != 0 {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	id := strings.Fields(strings.TrimPrefix(out, "started "))[0]
	shared := t.TempDir()
	if err := os.CopyFS(filepath.Join(shared, id), os.DirFS(filepath.Join(p.home, "jobs", id))); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"local-of-another-kind", "other"} { // nothing can be said of these
		if err := os.Mkdir(filepath.Join(shared, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if _, errs, code := p.call("rm", id); code != 0 {
		t.Fatalf("rm ended with %d: %s", code, errs)
	}
	u := p.ui("--history-dir", shared)
	browser := u.browser(t)
	for path, want := range map[string][]string{
		"/":                                   {"kept", "jobs/" + id + "/", shared, "succeeded", ">4"},
		"/jobs/" + id + "/":                   {"kept", "succeeded"},
		"/jobs/" + id + "/task?task=worker-0": {"the end of it"},
		"/jobs/" + id + "/configuration":      {"the end of it"},
	} {
		code, text := u.ask(t, browser, path, "")
		contains(t, text, want...)
		if code != http.StatusOK || strings.Contains(text, "another-kind") {
			t.Errorf("%s answers %d: %s", path, code, text)
		}
	}
	// What changes is read anew.
	file := filepath.Join(shared, id, proto.StatusFile)
	status, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file+".new", strings.ReplaceAll(string(status), `"kept"`, `"renamed"`))
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	_, text := u.ask(t, browser, "/", "")
	contains(t, text, "renamed")
	if code, text := u.ask(t, browser, "/jobs/local-of-another-kind/", ""); code != http.StatusNotFound || !strings.Contains(text, "read the state of local-of-another-kind") {
		t.Errorf("a job without a state answers %d: %s", code, text)
	}
}

// TestUIWithoutItsCluster: what cannot be asked is said, and the local jobs are shown.
func TestUIWithoutItsCluster(t *testing.T) {
	t.Parallel() // it tries for some seconds
	p := newPlace(t)
	if out, errs, code := p.call("run", "--local", "--name", "here", "--worker", "1", "--", "true"); code != 0 {
		t.Fatalf("run ended with %d:\n%s%s", code, out, errs)
	}
	u := p.uiWith("HADOOP_CONF_DIR=" + noCluster(t))
	browser := u.browser(t)
	for path, c := range map[string]struct {
		code int
		says string
	}{
		"/":                         {http.StatusOK, "here"},
		"/jobs.json":                {http.StatusServiceUnavailable, `"kind":"unreachable"`},
		"/jobs/application_1_0001/": {http.StatusServiceUnavailable, "does not answer"},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			code, text := u.ask(t, browser, path, "")
			contains(t, text, c.says, "127.0.0.1:1", "HADOOP_CONF_DIR")
			if code != c.code {
				t.Errorf("it answers %d", code)
			}
		})
	}
}

// TestUIMistakes: what cannot be done is said, with what to do.
func TestUIMistakes(t *testing.T) {
	p := newPlace(t)
	u := p.ui()
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"--listen", "nonsense"}, client.ExitUsage, []string{"--listen nonsense", "HOST:PORT", "127.0.0.1:0"}},
		{[]string{"--listen", ":x"}, client.ExitUsage, []string{"--listen :x", "HOST:PORT"}},
		{[]string{"--listen", u.Host}, client.ExitUsage, []string{u.Host, "address already in use", "another port"}},
		{[]string{"--checkpoint", "./none"}, client.ExitUsage, []string{"none"}},
		{[]string{"--history-dir", "./none"}, client.ExitUsage, []string{"none"}},
		{[]string{"--checkpoint", "s3://b/x"}, client.ExitUsage, []string{"s3://b/x", "hdfs://"}},
		{[]string{"job"}, client.ExitUsage, []string{`"job" is one too many`}},
	} {
		_, errs, code := p.call(append([]string{"ui"}, c.args...)...)
		if code != c.code {
			t.Errorf("%v ended with %d", c.args, code)
		}
		contains(t, errs, c.says...)
	}
}

// uiProcess is a process of yarn-submit ui, by the address that it prints.
type uiProcess struct {
	*url.URL
	process *os.Process
	ended   chan error
}

func (p place) ui(args ...string) uiProcess {
	p.t.Helper()
	return p.uiWith("", args...)
}

// uiWith is ui with a variable of the environment.
func (p place) uiWith(variable string, args ...string) uiProcess {
	p.t.Helper()
	cmd := p.command(append([]string{"ui", "--output", "json"}, args...)...)
	if variable != "" {
		cmd.Env = append(cmd.Env, variable)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	u := uiProcess{process: cmd.Process, ended: make(chan error, 1)}
	p.t.Cleanup(func() { _ = cmd.Process.Kill() })
	read := bufio.NewReader(out)
	var answer struct{ URL string }
	if err := json.NewDecoder(read).Decode(&answer); err != nil {
		p.t.Fatalf("ui prints no address: %v", err)
	}
	go func() { u.ended <- cmd.Wait() }()
	if u.URL, err = url.Parse(answer.URL); err != nil || u.Hostname() != "127.0.0.1" || u.Query().Get("token") == "" {
		p.t.Fatalf("ui prints the address %q: %v", answer.URL, err)
	}
	return u
}

// end interrupts the process, which must then end in order.
func (u uiProcess) end(t *testing.T) {
	t.Helper()
	if err := u.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-u.ended; err != nil {
		t.Errorf("interrupted, it ends with %v", err)
	}
}

// browser returns a client that has come with the token, and has a cookie for it.
func (u uiProcess) browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var set []*http.Cookie
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		set = append(set, r.Response.Cookies()...)
		return nil
	}}
	r, err := browser.Get(u.String())
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK || r.Request.URL.RawQuery != "" {
		t.Errorf("the address that it prints leads to %s, which answers %s", r.Request.URL, r.Status)
	}
	if p := r.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") {
		t.Errorf("the policy is %q", p)
	}
	if len(set) != 1 || !set[0].HttpOnly || set[0].SameSite != http.SameSiteLaxMode {
		t.Errorf("the cookies are %v", set)
	}
	return browser
}

// ask gets a page; host replaces the name that the request asks for, if it is not empty.
func (u uiProcess) ask(t *testing.T, c *http.Client, path, host string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+u.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Host = host; host != "" && c.Jar != nil { // a browser that is misled sends its cookies
		for _, k := range c.Jar.Cookies(u.URL) {
			r.AddCookie(k)
		}
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(text)
}
