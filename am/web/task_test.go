package web_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/am/web"
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
		Command: []string{"python3", "train.py", "--rate", "0.1", "--api-key", "k1", "--db_password=k2", "a b"},
		Env:     map[string]string{"HF_TOKEN": "k3", "EPOCHS": "12"},
		Roles: []*proto.RoleSpec{
			{Name: "ps", Count: 1, MemoryMb: 512},
			{Name: "worker", Count: 4, MemoryMb: 2048, Loss: proto.LossRule_LOSS_RULE_ALL, Command: []string{"serve", "--secret", "k4"}, Resources: licenses},
		},
		Checkpoints: []*proto.CheckpointSpec{{Path: "./logs", Uri: "hdfs:///user/me/logs"}},
		NotifyUrl:   "https://k5:k6@hooks.example.org/k7?key=k8",
	}
	text := get(t, web.Site{Status: fixed{lossyJob()}, Spec: spec}, "/configuration")
	for _, want := range []string{"python3 train.py --rate 0.1 --api-key (hidden) --db_password=(hidden) &#39;a b&#39;", "<dt>EPOCHS<dd>12", "<dt>HF_TOKEN<dd>(hidden)", "2048 MB", "<th>Other resources<th>", "<td class=\"n\">0<td><div>100G example.com/disk</div><div>1 example.com/fpga</div><td>all tasks", "<td class=\"n\">0<td><td>it alone", "hdfs:///user/me/logs", "<dt>Notified<dd>https://hooks.example.org/(hidden)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	for _, secret := range []string{"k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"} {
		if strings.Contains(text, secret) {
			t.Errorf("the secret %s is shown", secret)
		}
	}
	spec.Roles[1].Resources = nil
	if text := get(t, web.Site{Status: fixed{lossyJob()}, Spec: spec}, "/configuration"); strings.Contains(text, "Other resources") {
		t.Error("the page has a column of what no role asks for")
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
