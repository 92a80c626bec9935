// Package browser looks at the pages of a real job with a real browser, Chromium.
// go test ./test/browser -pictures DIR leaves pictures of them in DIR.
package browser

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"holdfast/proto"
	"holdfast/test/asuser"
)

var pictures = flag.String("pictures", "", "a directory for pictures of the pages")

// limit is much more than any of these tests takes.
const limit = 3 * time.Minute

// counting is a task that prints steps until it is killed.
const counting = `i=0; while :; do i=$((i+1)); echo "step $i loss: 0.$((9000 / (i + 9)))"; sleep 0.5; done`

// talking sends and receives something over the network, and then counts.
const talking = `python3 -c '
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(listener.getsockname())
b, _ = listener.accept()
while True:
    a.sendall(bytes(100000))
    left = 100000
    while left:
        left -= len(b.recv(left))
    time.sleep(0.1)
' & ` + counting

// TestPages: in a browser, the pages of a job follow what happens to it.
func TestPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	job, err := user.Run(ctx, "--local", "--name", "counting", "--worker", "2", "--env", "API_TOKEN=k1", "--", "sh", "-c", talking)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	var s *proto.JobStatus
	for s == nil || len(s.Tasks) != 2 || s.Tasks[0].Step == 0 || s.Tasks[1].Step == 0 || !s.Tasks[0].HasTraffic() {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(ctx, t, true)
	b.open(s.TrackingUrl)
	b.waitFor(`a[href="task?task=worker-1"]`, "worker-1")
	b.until("what the tasks send and receive", `/^↓\d+ KiB\/s ↑\d+ KiB\/s$/.test(document.querySelector("#rows td:nth-child(8)").textContent)`)
	if strings.Contains(b.html(), `class="gpu"`) {
		t.Error("the page says of GPUs what there are none of")
	}

	// A worker is killed and is back; the page shows it without being loaded anew.
	b.until("the page to be marked", `window.untouched = true`)
	if err := syscall.Kill(int(s.Tasks[1].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.waitFor("#incident-worker-1-0 .recovered", "back after")
	b.waitFor(`.timeline a[href="#incident-worker-1-0"] title`, "lost: ")
	b.click(`.timeline a[href="#incident-worker-1-0"] path`)
	b.waitFor("#incident-worker-1-0[open] .facts", "killed by SIGKILL")
	b.picture("job")
	// What is open stays open when the page is updated, and a link the same, so that a click that
	// has begun on it ends on it.
	b.until("the step to grow", `(() => { const s = Number(document.querySelector("#figures dd").textContent.replaceAll(",", "")); window.first ??= s; window.link ??= document.querySelector('#rows a[href="task?task=worker-1"]'); return s > window.first + 2 && document.querySelector("#incident-worker-1-0").open && window.untouched })()`)
	b.until("the link to be the same", `window.link === document.querySelector('#rows a[href="task?task=worker-1"]')`)

	// Filtered as one types.
	b.click("#filter input")
	b.do(chromedp.KeyEvent("worker-0"))
	b.until("the filter to apply", `document.querySelectorAll("#rows tbody tr").length === 1 && location.search === "?q=worker-0"`)

	b.do(prefer("dark"))
	b.until("the page to be dark", `getComputedStyle(document.body).backgroundColor === "rgb(20, 23, 26)"`)
	b.picture("job-dark")
	b.do(prefer("light"), chromedp.EmulateViewport(390, 844))
	b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("job-phone")
	b.waitFor("#rows", "loss: 0.") // what a task said last
	b.until("the tasks to be in view", `(document.getElementById("tasks").scrollIntoView(), true)`)
	b.picture("tasks-phone")
	b.do(chromedp.EmulateViewport(1280, 900))

	// A log is followed.
	b.open(s.TrackingUrl + "task?task=worker-0")
	b.until("the log to grow", `(() => { const n = document.querySelector("pre.log")?.textContent.split("\n").length; window.first ??= n; return n > window.first + 2 })()`)
	b.picture("task")
	b.open(s.TrackingUrl + "task?task=worker-1&attempt=0&q=step+1")
	b.waitFor("#output", "lines have")
	b.open(s.TrackingUrl + "configuration")
	b.waitFor(".facts", "API_TOKEN")
	b.picture("configuration")

	// The loss is plotted as it falls, beside the loss of the worker.
	b.open(s.TrackingUrl + "plots")
	b.until("the loss to fall", `(() => { const p = document.querySelector("figure path.line"); window.first ??= p?.getAttribute("d"); return document.querySelector("figcaption b").textContent === "loss" && window.first && p.getAttribute("d") !== window.first })()`)
	b.waitFor("figure .mark.lost title", "worker-1 lost: ")
	b.picture("plots")
	b.click("#filter [name=log]")
	b.until("the axes to be logarithmic", `location.search === "?log=1" && document.querySelector("figure svg").ariaLabel.endsWith(" on a logarithmic scale")`)
	b.do(prefer("dark"), chromedp.EmulateViewport(390, 844))
	b.until("the plots to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("plots-phone")
	b.do(prefer("light"), chromedp.EmulateViewport(1280, 900))

	b.open(s.TrackingUrl)
	b.waitFor("#plots figcaption", "loss")
	b.picture("overview")

	// Without the script, all is there, and forms work.
	plain := newBrowser(ctx, t, false)
	plain.open(s.TrackingUrl + "?q=worker-1")
	text := plain.html()
	for _, want := range []string{`<a href="task?task=worker-1">`, `id="incident-worker-1-0"`, "back after"} {
		if !strings.Contains(text, want) {
			t.Errorf("without the script the page does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, `<a href="task?task=worker-0">`) {
		t.Error("without the script the filter does not apply")
	}

	// The last that the page says is the end.
	b.open(s.TrackingUrl)
	if _, err := user.Call(ctx, "kill", job); err != nil {
		t.Fatal(err)
	}
	b.until("the end to be told", `!document.getElementById("connection").hidden || document.querySelector(".state").textContent === "killed"`)
}

// newUser builds yarn-submit, and returns how a user without any job calls it.
func newUser(ctx context.Context, t *testing.T) asuser.Caller {
	t.Helper()
	dir := t.TempDir()
	user := asuser.Caller{Submit: filepath.Join(dir, "yarn-submit"), Home: filepath.Join(dir, "home"), Dir: dir}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", user.Submit, "holdfast/cmd/yarn-submit").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	return user
}

// browser is a tab of a browser of its own.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// newBrowser starts a browser, which ends with the test. It fails the test when a page
// throws an exception, or does what its own policy forbids.
func newBrowser(ctx context.Context, t *testing.T, script bool) browser {
	alloc, cancelAlloc := chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))...)
	t.Cleanup(cancelAlloc)
	tab, cancelTab := chromedp.NewContext(alloc)
	t.Cleanup(cancelTab)
	b := browser{t, tab}
	b.do() // starts it
	if err := chromedp.Listen(tab, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page throws: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Source == log.EntrySourceSecurity || strings.Contains(e.Entry.Text, "Content Security Policy") {
				t.Errorf("the browser says: %s", e.Entry.Text)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	b.do(command(log.Enable, cdp.Empty{}), command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script}))
	return b
}

// command returns the action that sends a command of the DevTools protocol.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (b browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// prefer sets the color scheme that the system has.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// html returns the page as it is now.
func (b browser) html() string {
	b.t.Helper()
	text, err := look(b.ctx, chromedp.Evaluate[string]("document.body.outerHTML"))
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}

// look asks something of the page, again for as long as another is being opened.
func look[T any](ctx context.Context, a chromedp.Action[T]) (T, error) {
	for {
		answer, err := chromedp.Run(ctx, a)
		if err == nil || !strings.Contains(err.Error(), "Cannot find context") && !strings.Contains(err.Error(), "navigated") {
			return answer, err
		}
	}
}

func (b browser) open(address string) {
	b.t.Helper()
	b.do(chromedp.Navigate(address))
}

// waitFor waits until an element has a text.
func (b browser) waitFor(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%q in %s", text, selector), fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q) ?? false`, selector, text))
}

// until waits for a condition of the page.
func (b browser) until(what, condition string) {
	b.t.Helper()
	poll := chromedp.Poll[any](condition, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(limit/3))
	if _, err := look(b.ctx, poll); err != nil {
		b.t.Fatalf("waiting for %s: %v\n%s", what, err, b.html())
	}
}

// click clicks in the middle of an element, once it is there and nothing lies over it. The
// DevTools' own numbers of elements, by which chromedp would click, are void as soon as the
// browser has opened another page.
func (b browser) click(selector string) {
	b.t.Helper()
	at := b.middle(selector)
	b.do(chromedp.MouseClickXY(at[0], at[1]))
}

// middle returns where the middle of an element is, once it can be seen.
func (b browser) middle(selector string) []float64 {
	b.t.Helper()
	const where = `(() => {
		const e = document.readyState === "complete" && document.querySelector(%q);
		if (!e) return null;
		e.scrollIntoView({ block: "center", behavior: "instant" });
		const r = e.getClientRects()[0];
		if (!r || !r.width || !r.height) return null;
		const x = r.x + r.width / 2, y = r.y + r.height / 2, top = document.elementFromPoint(x, y);
		return top && (top.contains(e) || e.contains(top)) ? [x, y] : null;
	})()`
	at, err := look(b.ctx, chromedp.Poll[[]float64](fmt.Sprintf(where, selector), chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(limit/3)))
	if err != nil {
		b.t.Fatalf("waiting for %s to be seen: %v\n%s", selector, err, b.html())
	}
	return at
}

// picture saves a picture of the page.
func (b browser) picture(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if *pictures == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
