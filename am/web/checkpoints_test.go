package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/web"
	"holdfast/am/web/access"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// browse returns a site with the checkpoints of some directories.
func browse(t *testing.T, dirs ...string) web.Site {
	t.Helper()
	var list []inspect.Directory
	for i, d := range dirs {
		list = append(list, inspect.Directory{Path: fmt.Sprintf("./out-%d", i), URI: d})
	}
	b := inspect.NewBrowser(list, func(ctx context.Context, uri string) (store.Store, error) { return store.OpenExisting(ctx, uri, nil) })
	t.Cleanup(b.Close)
	return web.Site{Status: fixed{lossyJob()}, Checkpoints: b}
}

// save writes files into a directory, an hour ago.
func save(t *testing.T, dir string, files ...string) {
	t.Helper()
	for _, name := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Hour)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckpointsAreListed: with their state, and which one tasks continue from.
func TestCheckpointsAreListed(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-100/data", "step-100/COMMITTED", "step-200/data", "step-200/COMMITTED", "step-300/data")
	site := browse(t, dir)
	text := get(t, site, "/checkpoints")
	for _, want := range []string{">100</a>", ">200</a>", ">300</a>", `class="complete"`, `class="torn"`, "no file COMMITTED", "checkpoint?at=step-200&amp;dir=0\">step 200</a>", `aria-current="page">Checkpoints`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if a, b := strings.Index(text, ">300</a>"), strings.Index(text, ">100</a>"); a > b {
		t.Error("the newest is not the first")
	}
	if n := strings.Count(text, `class="tag"`); n != 1 {
		t.Errorf("%d checkpoints are marked", n)
	}
	if text := get(t, site, "/checkpoints?state=torn"); strings.Contains(text, ">100</a>") || !strings.Contains(text, ">300</a>") {
		t.Errorf("the state does not select:\n%s", text)
	}
	if text := get(t, site, "/checkpoints?q=10"); strings.Contains(text, ">200</a><") || !strings.Contains(text, ">100</a>") {
		t.Errorf("the step does not select:\n%s", text)
	}
	var list listing
	getJSON(t, site, "/checkpoints.json", &list)
	if list.Version != proto.JSONVersion || len(list.Directories) != 1 || len(list.Directories[0].Checkpoints) != 3 {
		t.Fatalf("checkpoints.json: %+v", list)
	}
	for i, c := range list.Directories[0].Checkpoints {
		if c.Restart != (i == 1) || c.Complete != (i > 0) || c.FileCount != 2 && i > 0 {
			t.Errorf("checkpoints.json: %+v", c)
		}
	}
}

type listing struct {
	Version     int `json:"json_version"`
	Directories []struct {
		URI, Error             string
		Total, Matching, Pages int
		Checkpoints            []inspect.Checkpoint
	}
}

func getJSON(t *testing.T, site web.Site, address string, v any) {
	t.Helper()
	text := get(t, site, address)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%s: %v: %s", address, err, text)
	}
}

// TestManyCheckpoints: they are paged through, the newest first, and no page is large.
func TestManyCheckpoints(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	const many = 10000
	for i := range many {
		d := filepath.Join(dir, fmt.Sprintf("step-%d", i+1))
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, "COMMITTED"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	save(t, other, "step-7/data", "step-7/COMMITTED")
	site := browse(t, dir, other)
	first := get(t, site, "/checkpoints?dir=0")
	for end := time.Now().Add(2 * time.Minute); !strings.Contains(first, "10,000 checkpoints") && time.Now().Before(end); {
		first = get(t, site, "/checkpoints?dir=0") // which waits for the listing, and not for ever
	}
	for _, want := range []string{"10,000 checkpoints", ">9,901</a>", "page 1 of 100", `<a href="checkpoints?dir=0&amp;page=2" rel="next">`} {
		if !strings.Contains(first, want) {
			t.Errorf("the first page does not have %q", want)
		}
	}
	if strings.Contains(first, ">9,900</a>") || len(first) > 100<<10 {
		t.Errorf("the first page has %d bytes", len(first))
	}
	if last := get(t, site, "/checkpoints?dir=0&page=100"); !strings.Contains(last, ">1</a>") || strings.Contains(last, ">101</a>") || strings.Contains(last, `rel="next"`) {
		t.Error("the last page does not have the oldest")
	}
	both := get(t, site, "/checkpoints")
	for _, want := range []string{">10,000</a>", ">7</a>", `<a href="checkpoints?dir=0">all of them</a>`, "./out-1"} {
		if !strings.Contains(both, want) {
			t.Errorf("the page of both directories does not have %q", want)
		}
	}
	if len(both) > 30<<10 {
		t.Errorf("the page of both directories has %d bytes", len(both))
	}
	text := get(t, site, "/checkpoints.json?dir=0&page=2")
	var list listing
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Directories) != 1 || len(list.Directories[0].Checkpoints) != 100 || list.Directories[0].Total != many {
		t.Errorf("checkpoints.json: %v, %.300s", err, text)
	}
	if len(text) > 300<<10 {
		t.Errorf("checkpoints.json has %d bytes", len(text))
	}
}

// TestADirectoryThatCannotBeListed: the page says why, and shows the others.
func TestADirectoryThatCannotBeListed(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-7/data", "step-7/COMMITTED")
	site := browse(t, filepath.Join(dir, "missing"), dir)
	text := get(t, site, "/checkpoints")
	for _, want := range []string{"the directory does not exist", ">7</a>"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	var list listing
	if getJSON(t, site, "/checkpoints.json", &list); len(list.Directories) != 2 || list.Directories[0].Error == "" || list.Directories[1].Error != "" {
		t.Errorf("checkpoints.json: %+v", list)
	}
}

// TestAListingThatTakesLong: a page does not wait for it, and shows it later.
func TestAListingThatTakesLong(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-7/data", "step-7/COMMITTED")
	gate := make(chan struct{})
	b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
		<-gate
		return store.OpenExisting(ctx, uri, nil)
	})
	defer b.Close()
	site := web.Site{Status: fixed{lossyJob()}, Checkpoints: b}
	if text := get(t, site, "/checkpoints"); !strings.Contains(text, "is being listed") || !strings.Contains(text, `data-updates="poll"`) {
		t.Errorf("while it is listed the page says\n%s", text)
	}
	close(gate)
	if text := get(t, site, "/checkpoints"); !strings.Contains(text, ">7</a>") {
		t.Errorf("after it was listed the page says\n%s", text)
	}
}

// TestCheckpointsWithoutAJob: a directory can be browsed alone.
func TestCheckpointsWithoutAJob(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-7/data", "step-7/COMMITTED")
	site := browse(t, dir)
	site.Status = nil
	for _, address := range []string{"/", "/checkpoints"} {
		if text := get(t, site, address); !strings.Contains(text, ">7</a>") || strings.Contains(text, `href="configuration"`) || strings.Contains(text, "status.json") {
			t.Errorf("%s:\n%s", address, text)
		}
	}
}

// TestErrorsAreJSON: where JSON is asked for.
func TestErrorsAreJSON(t *testing.T) {
	dir := t.TempDir()
	site := browse(t, dir)
	closed := access.ProxyFilter{Proxies: []string{"127.0.0.1"}, Allowed: func(string) bool { return false }}
	for _, c := range []struct {
		handler              http.Handler
		method, address      string
		status, code         int
		kind, message, allow string
	}{
		{web.Handler(site), "GET", "/checkpoints.json?dir=9", 404, 2, "usage", "no such thing", ""},
		{web.Handler(site), "GET", "/other.json", 404, 2, "usage", "/other.json", ""},
		{web.Handler(site), "POST", "/status.json", 405, 2, "usage", "POST", "GET, HEAD"},
		{access.Keyed("k", web.Handler(site)), "GET", "/x/status.json", 403, 4, "denied", "yarn-submit status", ""},
		{closed.Wrap(web.Handler(site)), "GET", "/status.json", 403, 4, "denied", "may be seen by some users only", ""},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(c.method, c.address, nil)
		r.RemoteAddr = "127.0.0.1:1"
		c.handler.ServeHTTP(w, r)
		var answer struct {
			Version int `json:"json_version"`
			Error   proto.Failure
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != c.status || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Allow") != c.allow {
			t.Errorf("%s %s answers %d, %v, %v: %s", c.method, c.address, w.Code, w.Header(), err, w.Body)
		} else if e := answer.Error; answer.Version != proto.JSONVersion || e.Code != c.code || e.Kind != c.kind || !strings.Contains(e.Message, c.message) {
			t.Errorf("%s %s: %+v", c.method, c.address, answer)
		}
	}
	w := httptest.NewRecorder()
	web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/checkpoints?dir=9", nil))
	if w.Code != http.StatusNotFound || strings.Contains(w.Body.String(), "{") {
		t.Errorf("the page answers %d: %s", w.Code, w.Body)
	}
}

// TestRetainedAndMovedAsideOnThePage: what the program has removed and is kept, and what was torn
// when tasks started, are in the list with their states, and found by them; by its page the one
// can be gone back to.
func TestRetainedAndMovedAsideOnThePage(t *testing.T) {
	dir := t.TempDir()
	for _, step := range []string{"7", "8"} {
		for _, suffix := range []string{".index", ".data-00000-of-00001"} {
			b, err := os.ReadFile("../../hdfsckpt/tfbundle/testdata/objects-24" + suffix)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "m-"+step+suffix), b, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, text := range map[string]string{"checkpoint": "model_checkpoint_path: \"m-8\"\n", "model-500.safetensors": "\x00\x10\x00\x00\x00\x00\x00\x00{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || len(report.Aside) != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	area := func(ctx context.Context) (string, error) {
		return writers.Dir("test"), store.MkdirAll(ctx, s, writers.Dir("test"), 0o755)
	}
	for _, name := range []string{"m-7.index", "m-7.data-00000-of-00001"} { // as the program's removal through a mount does
		retained, err := retain.Removing(t.Context(), s, area, name)
		if err == nil && !retained {
			err = s.Remove(t.Context(), name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	site := browse(t, dir)
	text := get(t, site, "/checkpoints")
	for _, want := range []string{`<span class="retained">retained</span>`, `<span class="moved-aside">moved aside</span>`, `<td class="n step">500<td`} { // which has no page
		if !strings.Contains(text, want) {
			t.Errorf("the list has no %q:\n%s", want, text)
		}
	}
	for state, want := range map[string]string{"retained": "m-7", "moved+aside": "model-500.safetensors"} {
		text := get(t, site, "/checkpoints?state="+state)
		if !strings.Contains(text, `<td class="name">`+want) || strings.Count(text, "<tr") != 2 {
			t.Errorf("the state %s selects:\n%s", state, text)
		}
	}
	if text := get(t, site, "/checkpoints?step=7"); !strings.Contains(text, "Yes, after a rollback to it; step 7 is retained, and tasks that start now continue from step 8.") {
		t.Errorf("of what is retained the page answers:\n%s", text)
	}
	if text := get(t, site, "/checkpoints?step=500"); !strings.Contains(text, "No: step 500 is moved aside, because ") {
		t.Errorf("of what was moved aside the page answers:\n%s", text)
	}
	m := regexp.MustCompile(`<a href="(checkpoint\?[^"]*)">7</a>`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("what is retained has no page:\n%s", text)
	}
	page := get(t, site, "/"+html.UnescapeString(m[1]))
	for _, want := range []string{"the program has removed or replaced it, and it is", "Roll back"} {
		if !strings.Contains(page, want) {
			t.Errorf("its page has no %q:\n%s", want, page)
		}
	}
}

// TestWhatIsNoStep: to a step that is none the page does not answer with all there is, and neither
// do addresses of JSON.
func TestWhatIsNoStep(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, "step-7/data", "step-7/COMMITTED")
	site := browse(t, dir)
	if text := get(t, site, "/checkpoints?step=7k"); !strings.Contains(text, "“7k” is no step") || !strings.Contains(text, `name="step" value="7k"`) {
		t.Errorf("to the step 7k the page answers:\n%s", text)
	}
	for _, address := range []string{
		"/checkpoints.json?step=7k", "/checkpoints.json?dir=x", "/checkpoints.json?page=x", "/checkpoints.json?page=0", "/checkpoint.json?at=step-7&dir=x", "/checkpoint?at=step-7&files=x",
		"/difference.json?from=step-7&to=step-7&dir=x", "/tensor.json?at=step-7&dir=x", "/task?task=ps-1&attempt=x", "/log?task=ps-1&attempt=0&process=-1",
	} {
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusBadRequest || strings.Contains(address, ".json") && !strings.Contains(w.Body.String(), `"kind":"usage"`) {
			t.Errorf("%s answers %d: %s", address, w.Code, w.Body)
		}
	}
}

// TestFilesThatAreNotUnderstood: the page says which files it does not know, and how to name their form.
func TestFilesThatAreNotUnderstood(t *testing.T) {
	if text := get(t, browse(t, t.TempDir()), "/checkpoints"); !strings.Contains(text, "There is no checkpoint yet.") {
		t.Errorf("of an empty directory the page says\n%s", text)
	}
	dir := t.TempDir()
	save(t, dir, "weights.npz", "state/part.msgpack")
	text := get(t, browse(t, dir), "/checkpoints")
	for _, want := range []string{"no checkpoint of a form that is known", "weights.npz", "state/", "format=plain with marker= or quiet="} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
}
