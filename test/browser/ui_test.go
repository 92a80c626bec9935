package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
)

// losing is a task that is lost once and then succeeds.
const losing = `for i in 1 2 3; do echo "step $i"; sleep 0.3; done
if [ {attempt} = 0 ]; then echo "about to be lost"; kill -KILL $$; fi
for i in 4 5 6; do echo "step $i"; sleep 0.3; done; echo "all done"`

// TestUI: after their end, jobs are found in the list of yarn-submit ui, and their pages are
// as they were.
func TestUI(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	job, err := user.Run(ctx, "--local", "--name", "mnist", "--worker", "2", "--env", "API_TOKEN=k1", "--", "sh", "-c", losing)
	if err != nil {
		t.Fatal(err)
	}
	failing, err := user.Run(ctx, "--local", "--name", "broken", "--worker", "1", "--restarts", "0", "--", "sh", "-c", "echo ValueError: bad; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{job, failing} {
		for s := (*proto.JobStatus)(nil); s == nil || !s.State.Done(); {
			if s, err = user.Status(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	address, stop, err := user.UI(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()

	b := newBrowser(ctx, t, true)
	b.open(address)
	b.until("the address to lose its token", `location.search === ""`)
	b.waitFor("#rows", "broken")
	b.picture("ui")
	b.do(chromedp.EmulateViewport(390, 844))
	b.until("the list to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("ui-phone")
	b.do(chromedp.EmulateViewport(1200, 900))
	b.do(chromedp.Focus(chromedp.CSS("#filter input")), chromedp.KeyEvent("mni"))
	b.until("the filter to apply", `document.querySelectorAll("#rows tbody tr").length === 1 && location.search === "?q=mni"`)
	// A job that starts meanwhile comes by itself.
	if _, err := user.Run(ctx, "--local", "--name", "mnist-again", "--worker", "1", "--", "true"); err != nil {
		t.Fatal(err)
	}
	b.until("another job to come", `document.querySelectorAll("#rows tbody tr").length === 2`)

	b.do(chromedp.Click(chromedp.CSS(`a[href="jobs/` + job + `/"]`)))
	b.waitFor("#incident-worker-1-0", "back after")
	b.waitFor(".title .state", "succeeded")
	b.do(chromedp.Click(chromedp.CSS("#incident-worker-1-0 summary")))
	b.picture("ui-job")
	b.do(chromedp.EmulateViewport(390, 844))
	b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("ui-job-phone")
	b.do(chromedp.EmulateViewport(1200, 900))
	b.do(chromedp.Click(chromedp.CSS(`#incident-worker-1-0 a[href*="attempt=0"]`)))
	b.waitFor("pre.log", "about to be lost")
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="plots"]`)))
	b.waitFor("figure .mark.lost title", " lost: ")
	b.until("the steps to be drawn", `document.querySelector("figcaption b").textContent === "step" && document.querySelector("path.line").getAttribute("d").startsWith("M")`)
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="configuration"]`)))
	b.waitFor(".facts", "API_TOKEN")
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="../../"]`)))
	b.waitFor("#rows", "broken")
}
