package browser

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"holdfast/proto"
)

// tabTo presses Tab until an element has the focus, which one must see.
func (b browser) tabTo(selector string) {
	b.t.Helper()
	b.waitFor(selector, "")
	for range 300 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at, err := look(b.ctx, chromedp.Evaluate[bool](fmt.Sprintf(`document.activeElement.matches(%q)`, selector)))
		if err != nil {
			b.t.Fatal(err)
		}
		if !at {
			continue
		}
		b.until("the focus on "+selector+" to be seen", `(() => {
			const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
			return s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1 && r.bottom > 0 && r.top < innerHeight && r.right > 0 && r.left < innerWidth;
		})()`)
		return
	}
	b.t.Fatalf("300 times Tab do not lead to %s:\n%s", selector, b.html())
}

// press presses a key on what has the focus.
func (b browser) press(key string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(key))
}

// TestKeyboardAlone: tasks, an incident, the plots of a part of the job's life, a checkpoint's
// tensor and a log are reached by Tab and Enter, with the focus to be seen; and it stays where it
// is when the page is updated.
func TestKeyboardAlone(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	givenModels(t, user)
	job, err := user.Run(ctx, "--local", "--name", "keys", "--framework", "none", "--ps", "1", "--worker", "2", "--files", "given/", "--checkpoint", "./out=ck", "--", "sh", "-c", training)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	var s *proto.JobStatus
	for s == nil || s.CompleteStep < 400 || len(s.Tasks) != 3 || s.Tasks[2].Step == 0 {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := user.Call(ctx, "kill", job, "worker-1"); err != nil {
		t.Fatal(err)
	}
	b := newBrowser(ctx, t, true)
	b.open(s.TrackingUrl)
	b.waitFor("#incident-worker-1-0 .recovered", "back after")

	b.until("what a restart would take", `/continues from step 400/.test(document.querySelector("#figures .restart")?.textContent)`)
	b.pictures("head")

	// From the mark on the timeline to the incident, which opens and closes.
	b.tabTo(`.timeline a[href="#incident-worker-1-0"]`)
	b.press(kb.Enter)
	b.waitFor("#incident-worker-1-0[open]", "restart requested")
	b.picture("keyboard-incident")
	b.tabTo("#incident-worker-1-0 summary")
	b.press(kb.Enter)
	b.until("the incident to close", `!document.querySelector("#incident-worker-1-0").open`)
	b.press(kb.Enter)
	b.until("the incident to open", `document.querySelector("#incident-worker-1-0").open`)

	// Tasks are ordered, and the focus stays while the page is updated.
	b.tabTo(`#rows th.cpu a`)
	b.press(kb.Enter)
	b.waitFor(`#rows th.cpu[aria-sort="descending"]`, "CPU")
	b.tabTo(`#rows a[href="task?task=worker-1"]`)
	b.until("the step to grow under the focus", `(() => { const s = Number(document.querySelector("#figures dd").textContent.replaceAll(",", "")); window.first ??= s; return s > window.first + 2 && document.activeElement.matches('#rows a[href="task?task=worker-1"]') })()`)
	b.picture("keyboard-tasks")
	b.press(kb.Enter)
	b.waitFor("#task h2", "worker-1")
	b.tabTo(`#output a[href="task?attempt=0&task=worker-1#log"]`)
	b.press(kb.Enter)
	b.waitFor("#output", "attempt 0")
	b.tabTo("pre.log")
	b.picture("keyboard-log")

	// A part of the job's life.
	b.open(s.TrackingUrl)
	b.tabTo(`nav a[href="plots"]`)
	b.press(kb.Enter)
	b.waitFor("figcaption b", "loss")
	b.tabTo(`.spans a[href*="from="]`) // closer
	b.press(kb.Enter)
	b.until("a part of the job's life", `new URLSearchParams(location.search).has("from") && document.querySelector(".spans .soft")?.textContent.includes(" – ")`)
	b.tabTo("#between summary")
	b.press(kb.Enter)
	b.waitFor("#between[open]", "from")
	b.picture("keyboard-part")

	// A checkpoint, down to the histogram of a tensor.
	b.tabTo(`nav a[href="checkpoints"]`)
	b.press(kb.Enter)
	b.tabTo(`.checkpoints .step a[href*="model-300"]`)
	b.press(kb.Enter)
	b.waitFor("#rows", "18 tensors")
	b.tabTo(`#rows a[href*="layers.5.dense.weight"]`)
	b.press(kb.Enter)
	b.until("40 bars", `document.querySelectorAll("#histogram rect").length === 40`)
	b.picture("keyboard-tensor")
}

// mouse is something that the mouse does with its left button, at a place of the window.
func mouse(what input.DispatchMouseEventType, x, y float64) chromedp.Action[chromedp.Void] {
	return command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: what, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
}

// TestDraggingSelectsAPart: dragging over a chart, and over the timeline, shows that part of the
// job's life; Escape breaks it off, and a click is still one.
func TestDraggingSelectsAPart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	job, err := user.Run(ctx, "--local", "--name", "mnist", "--worker", "2", "--", "sh", "-c", `for i in $(seq 60); do echo "step $i loss: 0.$((9000 / (i + 9)))"; sleep 0.5; done`)
	if err != nil {
		t.Fatal(err)
	}
	untilEnded(ctx, t, user, job)
	address := openUI(ctx, t, user)
	b := newBrowser(ctx, t, true)
	b.open(address)
	b.click(`a[href="jobs/` + job + `/"]`)
	b.waitFor("figcaption b", "loss")
	for _, over := range []string{"#plots figure > svg", "#timeline tr:last-child svg"} {
		// What is pressed before the page's script has run is not dragged.
		b.until("the whole life", `location.search === "" && document.readyState === "complete" && document.body.classList.contains("scripted") && document.querySelector("[data-from]")`)
		box, err := look(b.ctx, chromedp.Evaluate[[]float64](fmt.Sprintf(`(e => (e.scrollIntoView({ block: "center" }), (r => [r.left, r.top + r.height / 2, r.width])(e.getBoundingClientRect())))(document.querySelector(%q))`, over)))
		if err != nil {
			t.Fatal(err)
		}
		x, y, width := box[0], box[1], box[2]
		b.do(mouse(chromedp.MousePressed, x+width/4, y), mouse(chromedp.MouseMoved, x+width/2, y))
		b.until("what is selected to be marked", `document.querySelector(".select")?.getAttribute("width").startsWith("25")`)
		b.picture("dragging")
		b.press(kb.Escape)
		b.until("Escape to break it off", `!document.querySelector(".select")`)
		b.do(mouse(chromedp.MouseReleased, x+width/2, y), mouse(chromedp.MousePressed, x+width/4, y), mouse(chromedp.MouseMoved, x+width/2, y), mouse(chromedp.MouseMoved, x+width*3/4, y), mouse(chromedp.MouseReleased, x+width*3/4, y))
		b.until("the part in the middle", `(() => {
			const p = new URLSearchParams(location.search), e = document.querySelector("[data-from]");
			const from = Date.parse(p.get("from")), to = Date.parse(p.get("to"));
			return to - from > 10000 && to - from < 22000 && Number(e?.dataset.from) === from && Number(e?.dataset.to) === to;
		})()`)
		b.picture("dragged")
		b.click(".spans a") // all of it
	}
}
