package web_test

import (
	"context"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/am/web"
	"holdfast/client/spec"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// withLogs returns a site whose task ps-1 has written logs: of the attempts 0 and 1, the
// latter with two processes. A file beside the job's directory must never be shown.
func withLogs(t *testing.T, last string) web.Site {
	dir := t.TempDir()
	logs := filepath.Join(dir, "job", proto.LogsDir, "ps-1")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"0.log": "first\nValueError: <x>\n", "1.log": last, "1.1.log": "of the second process\n", "../../../0.log": "beside the job",
	} {
		if err := os.WriteFile(filepath.Join(logs, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return web.Site{Status: fixed{lossyJob()}, Files: s, Dir: "job"}
}

func TestTaskAndItsLog(t *testing.T) {
	site := withLogs(t, "step 1\nprogress 1\rprogress 2\n\x1b[31mred\x1b[0m\n")
	text := get(t, site, "/task?task=ps-1")
	for _, want := range []string{
		"step 1\nprogress 2\nred</pre>", "attempt=0#log", "attempt=1&amp;process=1", "no word from its node", "attempt 1 runs on node-8",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "generation 2") {
		t.Error("what concerns the job is said of the task")
	}
	for address, want := range map[string]string{
		"/task?task=ps-1&attempt=0":           "first\nValueError: &lt;x&gt;</pre>",
		"/task?task=ps-1&attempt=1&process=1": "of the second process</pre>",
		"/task?task=ps-1&attempt=0&q=VALUE":   "1 lines have “VALUE”",
		"/task?task=ps-1&attempt=7":           "attempt 7 of ps-1 has written nothing",
		"/log?task=ps-1&attempt=0":            "first\nValueError: <x>\n",
	} {
		if text := get(t, site, address); !strings.Contains(text, want) {
			t.Errorf("%s does not say %q:\n%s", address, want, text)
		}
	}
	if text := get(t, site, "/task?task=ps-1&attempt=0&q=VALUE"); strings.Contains(text, "first\n") {
		t.Error("a line without what is searched for is shown")
	}
	for _, address := range []string{"/task?task=none", "/task", "/log?task=none&attempt=0", "/log?task=ps-1", "/log?task=ps-1&attempt=9", "/log?task=..&attempt=0", "/log?task=../..&attempt=0", "/task?task=../.."} {
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "beside") {
			t.Errorf("%s answers %d: %s", address, w.Code, w.Body)
		}
	}
}

// TestLogsThatAreLong: the end of a long log is shown, from the beginning of a line.
func TestLogsThatAreLong(t *testing.T) {
	site := withLogs(t, strings.Repeat("0123456789\n", 100_000)+"the end\n")
	text := get(t, site, "/task?task=ps-1")
	if !strings.Contains(text, "tabindex=\"0\">0123456789\n") || !strings.Contains(text, "the end</pre>") || len(text) > 100<<10 {
		t.Errorf("of a long log, %d bytes are shown:\n%.2000s", len(text), text)
	}
	// Of more that is found than is shown, the last lines are.
	if text := get(t, site, "/task?task=ps-1&q=E"); !strings.Contains(text, "1 lines have") {
		t.Errorf("a search in a long log finds:\n%.2000s", text)
	}
	if text := get(t, site, "/task?task=ps-1&q=345"); !strings.Contains(text, "100000 lines have") || strings.Count(text, "0123456789") != 500 {
		t.Errorf("a search in a long log shows %d lines", strings.Count(text, "0123456789"))
	}
	if whole := get(t, site, "/log?task=ps-1&attempt=1"); len(whole) != 1_100_008 {
		t.Errorf("the whole log has %d bytes", len(whole))
	}
}

// TestConfiguration: secrets are hidden.
func TestConfiguration(t *testing.T) {
	licenses := map[string]*proto.Amount{"example.com/fpga": {Value: 1}, "example.com/disk": {Value: 100, Unit: "G"}}
	spec := &proto.JobSpec{
		Command: []string{"python3", "train.py", "--rate", "0.1", "--api-key", "k1", "--db_password=k2", "--signing-key=k13", "--key", "k14", "--proxy=http://me:k15@proxy:3128", "a b"},
		Env: map[string]string{
			"HF_TOKEN": "k3", "EPOCHS": "12", "SSH_KEY": "k9", "dataKey": "k10", "DB_PASS": "k11", "KEYBOARD": "german", "KEY_DIM": "64",
			"TRACKING": "https://me:k12@mlflow.example.org/x", "MONKEY": "http://example.org:80/a@b",
		},
		Roles: []*proto.RoleSpec{
			{Name: "ps", Count: 1, MemoryMb: 512},
			{Name: "worker", Count: 4, MemoryMb: 2048, Loss: proto.LossRule_LOSS_RULE_ALL, Command: []string{"serve", "--secret", "k4"}, Resources: licenses},
		},
		Checkpoints: []*proto.CheckpointSpec{{Path: "./logs", Uri: "hdfs:///user/me/logs"}},
		NotifyUrl:   "https://k5:k6@hooks.example.org/k7?key=k8",
	}
	text := get(t, web.Site{Status: fixed{lossyJob()}, Spec: spec}, "/configuration")
	for _, want := range []string{
		"python3 train.py --rate 0.1 --api-key (hidden) --db_password=(hidden) --signing-key=(hidden) --key (hidden) --proxy=http://me:(hidden)@proxy:3128 &#39;a b&#39;", "<dt>EPOCHS<dd>12", "<dt>HF_TOKEN<dd>(hidden)", "<dt>KEYBOARD<dd>german", "<dt>KEY_DIM<dd>64",
		"<dt>TRACKING<dd>https://me:(hidden)@mlflow.example.org/x", "<dt>MONKEY<dd>http://example.org:80/a@b",
		`<th scope="row">ps<td><dl><div><dt>count<dd>1</div><div><dt>memory<dd>512m</div>`, `<div><dt>memory<dd class="soft">2g</div>`,
		`<dt>resource<dd>example.com/disk=100G, example.com/fpga=1</div>`, `<div><dt>restarted after a loss<dd>all tasks</div></dl><pre>serve --secret (hidden)</pre>`,
		"<dt>restarted after a loss<dd>it alone", `<th scope="row">./logs<td><dl><div><dt>uri<dd>hdfs:///user/me/logs</div>`, "<dt>notify<dd>https://hooks.example.org/(hidden)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, secret := range []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15"} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret %s is shown", secret)
		}
	}
}

// TestConfigurationIsWhole: every option that is set is shown, whatever tables have.
func TestConfigurationIsWhole(t *testing.T) {
	whole := &proto.JobSpec{Command: []string{"train"}, Env: map[string]string{"A": "b"}, Files: []*proto.FileSpec{{Name: "a.py", Uri: "hdfs:///a.py"}}}
	setAll(whole.ProtoReflect())
	text := html.UnescapeString(get(t, web.Site{Status: fixed{lossyJob()}, Spec: whole}, "/configuration"))
	settings := spec.SettingsOf(whole)
	if len(settings.Job) < 30 || len(settings.Roles) != 1 || len(settings.Roles[0]) < 15 || len(settings.Checkpoints) != 1 || len(settings.Checkpoints[0]) < 5 {
		t.Fatalf("there are too few settings: %+v", settings)
	}
	for _, list := range [][]spec.Setting{settings.Job, settings.Roles[0], settings.Checkpoints[0]} {
		for _, s := range list {
			if s.Secret {
				s.Value = proto.ShownURL(s.Value)
			}
			if want := "<div><dt>" + s.Name + "<dd>" + s.Value + "</div>"; !strings.Contains(text, want) {
				t.Errorf("the page has no %q:\n%s", want, text)
			}
		}
	}
	for _, want := range []string{"<h2>Losses and time limits</h2>", "<h2>Cluster and identity</h2>", "<h2>Container images</h2>", "<h2>Environment</h2>", "<h2>Files</h2>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// setAll sets all single values of a message, and of one message in each list of them.
func setAll(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if f.IsMap() || m.Has(f) {
			continue
		}
		value := map[protoreflect.Kind]any{
			protoreflect.StringKind: "value of " + string(f.Name()), protoreflect.BoolKind: true, protoreflect.EnumKind: protoreflect.EnumNumber(1), protoreflect.DoubleKind: 60.0,
			protoreflect.Int64Kind: int64(60000), protoreflect.Uint32Kind: uint32(60), protoreflect.Int32Kind: int32(60),
		}[f.Kind()]
		switch {
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			e := m.Mutable(f).List().NewElement()
			setAll(e.Message())
			m.Mutable(f).List().Append(e)
		case f.IsList():
			m.Mutable(f).List().Append(protoreflect.ValueOf(value))
		case f.Kind() != protoreflect.MessageKind:
			m.Set(f, protoreflect.ValueOf(value))
		}
	}
}

// TestOtherResourcesOfATask: its page says what its container has of them.
func TestOtherResourcesOfATask(t *testing.T) {
	status := lossyJob()
	name := status.Tasks[0].Task
	if text := get(t, web.Site{Status: fixed{status}}, "/task?task="+name); strings.Contains(text, "Other resources") {
		t.Error("the page of a task without any says something of other resources")
	}
	status.Tasks[0].Resources = map[string]string{"example.com/fpga": "1", "example.com/disk": "100G"}
	if text := get(t, web.Site{Status: fixed{status}}, "/task?task="+name); !strings.Contains(text, "<dt>Other resources<dd>100G example.com/disk, 1 example.com/fpga") {
		t.Errorf("the page does not say what the task has:\n%s", text)
	}
}

// cut is a store of files of which only the beginning can be read.
type cut struct{ store.Store }

func (c cut) Open(ctx context.Context, name string) (store.Reader, error) {
	r, err := c.Store.Open(ctx, name)
	return cutReader{r}, err
}

type cutReader struct{ store.Reader }

func (c cutReader) ReadAt(b []byte, at int64) (int, error) {
	if at > 0 {
		return 0, errors.New("no DataNode has it")
	}
	return c.Reader.ReadAt(b, at)
}

// TestAPartOfALogIsNotTheWhole: who asks for the whole log learns of it if it cannot be read to its
// end.
func TestAPartOfALogIsNotTheWhole(t *testing.T) {
	site := withLogs(t, strings.Repeat("0123456789\n", 100_000))
	fetch := func(method string) (text []byte, length int64, err error) {
		s := httptest.NewServer(web.Handler(site))
		defer s.Close()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/log?task=ps-1&attempt=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, 0, err
		}
		defer answer.Body.Close()
		text, err = io.ReadAll(answer.Body)
		return text, answer.ContentLength, err
	}
	if text, length, err := fetch(http.MethodGet); err != nil || len(text) != 1_100_000 || length != 1_100_000 {
		t.Errorf("the log has %d bytes of %d, %v", len(text), length, err)
	}
	site.Files = cut{site.Files}
	if text, _, err := fetch(http.MethodGet); err == nil {
		t.Errorf("%d bytes are taken for the whole log", len(text))
	}
	if _, length, err := fetch(http.MethodHead); err != nil || length != 1_100_000 {
		t.Errorf("without the log itself its length is said to be %d, %v", length, err)
	}
}

// TestIncidentsOfATask: its page has its own, however many others there were since.
func TestIncidentsOfATask(t *testing.T) {
	job := lossyJob()
	lose := func(task string, n int) {
		job.Tasks = append(job.Tasks, &proto.TaskStatus{Task: task})
		for i := range n {
			job.Incidents = append(job.Incidents, &proto.Incident{AtUnixMs: job.StartedUnixMs + int64(60+i)*60_000, Task: task, Attempt: int32(i), Cause: "preempted"})
		}
	}
	lose("worker-1", 60)
	if text := get(t, web.Site{Status: fixed{job}}, "/task?task=ps-1"); !strings.Contains(text, `id="incident-ps-1-0"`) || strings.Contains(text, "older ones") {
		t.Errorf("the page of a task that was lost before others has no incident:\n%s", text)
	}
	if text := get(t, web.Site{Status: fixed{job}}, "/task?task=worker-1"); strings.Count(text, `id="incident-worker-1-`) != 50 || !strings.Contains(text, "10 older ones") {
		t.Errorf("of 60 incidents the page of a task has %d", strings.Count(text, `id="incident-worker-1-`))
	}
}

// TestWhatIsShownIsFound: a search looks at lines as they are shown, behind whatever a progress bar
// wrote before.
func TestWhatIsShownIsFound(t *testing.T) {
	bar := strings.Repeat("\r 12%|"+strings.Repeat("#", 90), 500)
	site := withLogs(t, bar+"\repoch 3 has ended\nnext\r\n"+bar+"\rgone\r\r\n"+strings.Repeat("x", 9000)+"far\nepoch 4")
	for search, want := range map[string]string{
		"ended": "epoch 3 has ended</pre>", "next": "next</pre>", "gone": "gone</pre>", "epoch": "epoch 3 has ended\nepoch 4</pre>",
	} {
		if text := get(t, site, "/task?task=ps-1&q="+search); !strings.Contains(text, `tabindex="0">`+want) {
			_, shown, _ := strings.Cut(text, `<pre class="log"`)
			t.Errorf("a search for %q shows %.300s", search, shown)
		}
	}
	if text := get(t, withLogs(t, "the end"+strings.Repeat("x", 8<<10-7)), "/task?task=ps-1&q=the+end"); !strings.Contains(text, "1 lines have") {
		t.Error("a last line that is as long as what is read at a time is not found")
	}
	if text := get(t, site, "/task?task=ps-1&q=12%25"); !strings.Contains(text, ": 0 lines have") {
		t.Error("what is not shown is found")
	}
}

// gated is a store of files that are read once a gate is open.
type gated struct {
	store.Store
	reading *atomic.Int32 // readers that wait for the gate, or have passed it and not ended
	gate    chan struct{}
}

func (g gated) Open(ctx context.Context, name string) (store.Reader, error) {
	r, err := g.Store.Open(ctx, name)
	return gatedReader{r, g}, err
}

type gatedReader struct {
	store.Reader
	gated
}

func (g gatedReader) ReadAt(b []byte, at int64) (int, error) {
	g.reading.Add(1)
	defer g.reading.Add(-1)
	<-g.gate
	return g.Reader.ReadAt(b, at)
}

func (g gatedReader) Close() error { return g.Reader.Close() }

// TestLogsAreSearchedOneAtATime: of a log much is read for a search, and whoever may see the job can
// ask for many.
func TestLogsAreSearchedOneAtATime(t *testing.T) {
	site := withLogs(t, "step 1\n")
	synctest.Test(t, func(t *testing.T) {
		g := gated{site.Files, new(atomic.Int32), make(chan struct{})}
		site.Files = g
		pages := web.Handler(site)
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() {
				w := httptest.NewRecorder()
				pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/task?task=ps-1&q=step", nil))
				if !strings.Contains(w.Body.String(), "1 lines have") {
					t.Errorf("a search finds:\n%s", w.Body)
				}
			})
		}
		synctest.Wait()
		if n := g.reading.Load(); n != 1 {
			t.Errorf("%d searches read at a time", n)
		}
		close(g.gate)
		all.Wait()
	})
}
