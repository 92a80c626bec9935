package web_test

import (
	"context"
	"errors"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"

	"holdfast/am/web"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// checkpointed returns a site, whose user is named by the header User, with three checkpoints of
// TensorFlow of the steps 7, 8 and 9; its log; and a function that says which are there.
func checkpointed(t *testing.T, proxied bool) (site web.Site, dir string, audit *logtest.Hook, there func() string) {
	t.Helper()
	dir = t.TempDir()
	for _, step := range []string{"7", "8", "9"} {
		for _, kind := range []string{".index", ".data-00000-of-00001"} {
			b, err := os.ReadFile("../../hdfsckpt/tfbundle/testdata/objects-24" + kind)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "m-"+step+kind), b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "checkpoint"), []byte(`model_checkpoint_path: "m-9"`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	site = browse(t, dir)
	log, audit := logtest.NewNullLogger()
	site.Changes = web.NewChanges(func(r *http.Request) (string, error) {
		who := r.Header.Get("User")
		if who == "bob" {
			return who, errors.New("bob may not")
		}
		return who, nil
	}, proxied, logrus.NewEntry(log))
	return site, dir, audit, func() string {
		got := ""
		for _, step := range []string{"7", "8", "9"} {
			if _, err := os.Stat(filepath.Join(dir, "m-"+step+".index")); err == nil {
				got += step
			}
		}
		return got
	}
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([a-z]+)" value="([^"]*)">`)

// planned returns what the form on the page of a plan sends; nil if it has none.
func planned(t *testing.T, site web.Site, address, user string) url.Values {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, address, nil)
	r.Header.Set("User", user)
	w := httptest.NewRecorder()
	web.Handler(site).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s answers %d: %s", address, w.Code, w.Body)
	}
	_, form, found := strings.Cut(w.Body.String(), "data-change>")
	if !found {
		return nil
	}
	p := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(form, -1) {
		p.Set(m[1], m[2])
	}
	return p
}

// send sends a form as a browser does, with the headers given as pairs.
func send(site web.Site, method, address string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, address, strings.NewReader(form.Encode()))
	r.Header.Set("User", "alice")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	w := httptest.NewRecorder()
	web.Handler(site).ServeHTTP(w, r)
	return w
}

// TestCheckpointsArePruned: by those who may, who have been shown the very plan, from the page
// itself; each change and each that is refused is in the log.
func TestCheckpointsArePruned(t *testing.T) {
	site, _, audit, there := checkpointed(t, false)
	if text := get(t, site, "/checkpoints"); !strings.Contains(text, `href="prune?dir=0"`) {
		t.Errorf("the list does not lead to a prune:\n%s", text)
	}
	form := planned(t, site, "/prune?dir=0&keep=2", "alice")
	for _, refused := range []struct {
		why     string
		code    int
		form    url.Values
		headers []string
	}{
		{"no proof", http.StatusConflict, url.Values{"dir": {"0"}, "keep": {"2"}}, nil},
		{"another plan", http.StatusConflict, url.Values{"dir": {"0"}, "keep": {"1"}, "proof": form["proof"]}, nil},
		{"another user's proof", http.StatusConflict, form, []string{"User", "carol"}},
		{"a user who may not", http.StatusForbidden, form, []string{"User", "bob"}},
		{"another site", http.StatusForbidden, form, []string{"Sec-Fetch-Site", "cross-site"}},
		{"another site, as an old browser says", http.StatusForbidden, form, []string{"Origin", "http://evil.example"}},
	} {
		for _, method := range []string{http.MethodPost, http.MethodPut} {
			if w := send(site, method, "/prune", refused.form, refused.headers...); w.Code != refused.code {
				t.Errorf("%s (%s): %d, want %d: %s", refused.why, method, w.Code, refused.code, w.Body)
			}
		}
	}
	if w := send(site, http.MethodGet, "/prune?"+form.Encode(), nil); w.Code != http.StatusOK {
		t.Errorf("the plan is shown with %d", w.Code)
	}
	if got := there(); got != "789" {
		t.Fatalf("after what was refused there are %s", got)
	}
	if n := len(audit.AllEntries()); n != 12 {
		t.Errorf("the log has %d lines about 12 refusals", n)
	}
	audit.Reset()
	if form := planned(t, site, "/prune?dir=0&keep=2", "bob"); form != nil {
		t.Errorf("a user who may not has the form %v", form)
	}
	w := send(site, http.MethodPost, "/prune", form, "Sec-Fetch-Site", "same-origin")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "1 checkpoint was removed") || there() != "89" {
		t.Errorf("the prune answers %d, and leaves %s:\n%s", w.Code, there(), w.Body)
	}
	line := audit.LastEntry()
	if line == nil || line.Data["audit"] != "prune" || line.Data["who"] != "alice" || line.Data["allowed"] != true || !strings.Contains(line.Data["change"].(string), "--keep 2") {
		t.Errorf("the log says %+v", line)
	}
	// What is not there any longer cannot be agreed to again.
	if w := send(site, http.MethodPost, "/prune", form); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "have changed since") {
		t.Errorf("the plan of what is gone answers %d:\n%s", w.Code, w.Body)
	}
	if text := get(t, site, "/checkpoints"); strings.Contains(text, ">7</a>") {
		t.Error("the list has what was removed")
	}
}

// TestACheckpointIsRolledBackTo: but not while a job that writes there is alive.
func TestACheckpointIsRolledBackTo(t *testing.T) {
	site, dir, _, _ := checkpointed(t, true)
	text := get(t, site, "/checkpoint?at=m-8")
	m := regexp.MustCompile(`href="(rollback\?[^"]*)"`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("the page does not lead to a rollback:\n%s", text)
	}
	address := "/" + strings.ReplaceAll(m[1], "&amp;", "&")
	form := planned(t, site, address, "alice")
	if w := send(site, http.MethodPost, "/rollback", form); w.Code != http.StatusForbidden {
		t.Errorf("a POST, which no proxy passes on, answers %d", w.Code)
	}
	s, err := store.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	alive := proto.WriterName("job-7", proto.MasterContainer)
	if err := store.MkdirAll(t.Context(), s, writers.Dir(alive), 0o755); err != nil {
		t.Fatal(err)
	}
	beating := make(chan struct{})
	go func() {
		defer close(beating)
		for writers.Heartbeat(t.Context(), s, alive) == nil { // until its directory is gone
			runtime.Gosched()
		}
	}()
	w := send(site, http.MethodPut, "/rollback", form)
	if w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "while job-7 writes to it") {
		t.Errorf("while a job writes there it answers %d:\n%s", w.Code, w.Body)
	}
	if err := os.Remove(filepath.Join(dir, writers.Dir(alive))); err != nil {
		t.Fatal(err)
	}
	<-beating
	if w = send(site, http.MethodPut, "/rollback", form); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "continue from step 8") {
		t.Errorf("it answers %d:\n%s", w.Code, w.Body)
	}
	pointer, err := os.ReadFile(filepath.Join(dir, "checkpoint"))
	if err != nil || !strings.Contains(string(pointer), `model_checkpoint_path: "m-8"`) {
		t.Errorf("the pointer: %s, %v", pointer, err)
	}
	for _, address := range []string{"/rollback?dir=0&step=17&name=m-17", "/rollback.json?dir=0&step=x", "/prune?dir=9"} {
		r := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(r, httptest.NewRequest(http.MethodGet, address, nil))
		if strings.Contains(r.Body.String(), "data-change>") {
			t.Errorf("%s has a form:\n%s", address, r.Body)
		}
	}
}

// TestNewerCheckpointsAreMovedAside: where programs take what is newest, the plan says what is
// moved and where to, and the list leads to the plan that restores it.
func TestNewerCheckpointsAreMovedAside(t *testing.T) {
	dir := t.TempDir()
	b, err := os.ReadFile("../../hdfsckpt/torchfile/testdata/alone.pt")
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"7", "8", "9"} {
		if err := os.WriteFile(filepath.Join(dir, "step-"+step+".pt"), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	site := browse(t, dir)
	log, _ := logtest.NewNullLogger()
	site.Changes = web.NewChanges(func(r *http.Request) (string, error) { return r.Header.Get("User"), nil }, false, logrus.NewEntry(log))
	there := func() string {
		found, err := filepath.Glob(filepath.Join(dir, "*.pt"))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range found {
			got += strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "step-"), ".pt")
		}
		return got
	}
	follow := func(page, link string) (address string, form url.Values) {
		t.Helper()
		text := get(t, site, page)
		m := regexp.MustCompile(`href="(rollback\?[^"]*)">` + link).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("the page does not lead to a rollback:\n%s", text)
		}
		address = "/" + strings.ReplaceAll(m[1], "&amp;", "&")
		return address, planned(t, site, address, "alice")
	}
	address, form := follow("/checkpoint?at=step-7.pt", "Roll back")
	text := get(t, site, address)
	for _, says := range []string{"2 are moved aside", ".holdfast/aside", "30 days", "move aside", "step-9.pt"} {
		if !strings.Contains(text, says) {
			t.Errorf("the plan does not say %q:\n%s", says, text)
		}
	}
	if text := get(t, site, strings.Replace(address, "rollback?", "rollback.json?", 1)); !strings.Contains(text, `"moved":[{`) && !strings.Contains(text, `"moved": [`) || there() != "789" {
		t.Errorf("the plan as JSON, there are %s: %s", there(), text)
	}
	if w := send(site, http.MethodPost, "/rollback", form, "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "continue from step 7") || there() != "7" {
		t.Errorf("it answers %d, and leaves %s:\n%s", w.Code, there(), w.Body)
	}
	if text := get(t, site, "/checkpoints"); !strings.Contains(text, "rolled back to 7 by alice at ") {
		t.Errorf("the list does not say what was moved aside, and why:\n%s", text)
	}
	if text := get(t, site, address); strings.Contains(text, "data-change>") || !strings.Contains(text, "There is nothing to do") {
		t.Errorf("what was done already is planned:\n%s", text)
	}
	_, form = follow("/checkpoints", "Restore") // the newest is the first in the list
	if w := send(site, http.MethodPost, "/rollback", form, "Sec-Fetch-Site", "same-origin"); w.Code != http.StatusOK || there() != "789" {
		t.Errorf("forward again it answers %d, and there are %s:\n%s", w.Code, there(), w.Body)
	}
}

// TestAPlanIsOfWhatWasAskedFor: of what cannot be read nothing is planned, and nothing done, in its
// place.
func TestAPlanIsOfWhatWasAskedFor(t *testing.T) {
	site, _, _, there := checkpointed(t, true)
	for _, query := range []string{
		"keep=x", "keep=0", "keep=-1", "keep=1e1", "keep=99999999999999999999", "every=0", "every=-5", "every=x", "dir=x", "dir=-1", "keep=%zz", "keep=1;every=2",
	} {
		for _, page := range []string{"/prune", "/prune.json"} {
			w := httptest.NewRecorder()
			web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, page+"?"+query, nil))
			if w.Code != http.StatusBadRequest {
				t.Errorf("%s?%s answers %d: %s", page, query, w.Code, w.Body)
			}
		}
	}
	if text := get(t, site, "/prune?dir=0&keep=2&every="); !strings.Contains(text, `name="every" min="1" value=""`) {
		t.Errorf("the form of a plan without a multiple is\n%s", text)
	}
	form := planned(t, site, "/prune?dir=0&keep=2", "alice")
	for name, value := range map[string]string{"keep": "x", "dir": "x", "every": "-1"} {
		changed := maps.Clone(form)
		changed.Set(name, value)
		if w := send(site, http.MethodPut, "/prune", changed); w.Code != http.StatusBadRequest || there() != "789" {
			t.Errorf("%s=%s answers %d, and leaves %s: %s", name, value, w.Code, there(), w.Body)
		}
	}
	for _, query := range []string{"", "step=x", "step="} {
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/rollback.json?name=m-8&"+query, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the step to go back to") {
			t.Errorf("a rollback to %q answers %d: %s", query, w.Code, w.Body)
		}
	}
}

// TestCommandsOnPagesAreOfTheShell: a shell takes the command that a page shows as it is meant,
// whatever the directory is called.
func TestCommandsOnPagesAreOfTheShell(t *testing.T) {
	for _, name := range []string{"plain-1.5_x", "token=1", "a b", "a(1)", "[ab]*?", "{a,b}", "{a..c}", "a #b", "!x", `it's "$HOME"`, "x;y&z|<>", "back\\slash", "\u00e4"} {
		dir := filepath.Join(t.TempDir(), name)
		save(t, dir, "step-7/data", "step-7/COMMITTED")
		text := get(t, browse(t, dir), "/prune?keep=2")
		_, command, _ := strings.Cut(text, "As a command:</p>\n<pre>")
		command, _, _ = strings.Cut(command, "</pre>")
		for _, shell := range []string{"sh", "bash"} {
			words, err := exec.CommandContext(t.Context(), shell, "-c", "printf '%s\\n' "+html.UnescapeString(command)).CombinedOutput()
			if want := "yarn-submit\nckpt\nprune\n" + dir + "\n--keep\n2\n"; err != nil || string(words) != want {
				t.Errorf("%s takes %s as %q, %v; want %q", shell, command, words, err, want)
			}
		}
	}
}

// slow is a store in which nothing is removed before a gate is open.
type slow struct {
	store.Store
	gate chan struct{}
}

func (s slow) Remove(ctx context.Context, name string) error {
	select {
	case <-s.gate:
	case <-ctx.Done():
	}
	return s.Store.Remove(ctx, name)
}

// TestTheLogSaysHowAChangeHasEnded: also where nobody has waited for that.
func TestTheLogSaysHowAChangeHasEnded(t *testing.T) {
	site, dir, audit, there := checkpointed(t, false)
	form := planned(t, site, "/prune?dir=0&keep=1", "alice")
	gate := make(chan struct{})
	b := inspect.NewBrowser([]inspect.Directory{{URI: dir}}, func(ctx context.Context, uri string) (store.Store, error) {
		s, err := store.OpenExisting(ctx, uri, nil)
		return slow{s, gate}, err
	})
	defer b.Close()
	site.Checkpoints = b
	ctx, leave := context.WithCancel(t.Context())
	answered := make(chan int, 1)
	go func() {
		r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/prune", strings.NewReader(form.Encode()))
		r.Header.Set("User", "alice")
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, r)
		answered <- w.Code
	}()
	said := func(what string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if line := audit.LastEntry(); line != nil && line.Message == what {
				return
			} else if time.Now().After(end) {
				t.Fatalf("the log never says %q, but %+v", what, line)
			}
		}
	}
	said("checkpoints are changed")
	leave()
	if code := <-answered; code != http.StatusAccepted {
		t.Errorf("who does not wait for it is answered %d", code)
	}
	close(gate)
	said("checkpoints have been changed")
	for _, line := range audit.AllEntries() {
		if line.Level < logrus.InfoLevel {
			t.Errorf("the log says %s: %s", line.Level, line.Message)
		}
	}
	if got := there(); got != "9" {
		t.Errorf("there are %s", got)
	}
}
