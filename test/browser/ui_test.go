package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/test/asuser"
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
	untilEnded(ctx, t, user, job, failing)
	address := openUI(ctx, t, user)
	b := newBrowser(ctx, t, true)
	b.open(address)
	b.until("the address to lose its token", `location.search === ""`)
	b.waitFor("#rows", "broken")
	b.picture("ui")
	b.do(chromedp.EmulateViewport(390, 844))
	b.until("the list to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("ui-phone")
	b.do(chromedp.EmulateViewport(1200, 900))
	b.click("#filter input")
	b.do(chromedp.KeyEvent("mni"))
	b.until("the filter to apply", `document.querySelectorAll("#rows tbody tr").length === 1 && location.search === "?q=mni"`)
	// A job that starts meanwhile comes by itself.
	if _, err := user.Run(ctx, "--local", "--name", "mnist-again", "--worker", "1", "--", "true"); err != nil {
		t.Fatal(err)
	}
	b.until("another job to come", `document.querySelectorAll("#rows tbody tr").length === 2`)

	b.click(`a[href="jobs/` + job + `/"]`)
	b.waitFor("#incident-worker-1-0", "back after")
	b.waitFor(".title .state", "succeeded")
	b.click("#incident-worker-1-0 summary")
	b.picture("ui-job")
	b.do(chromedp.EmulateViewport(390, 844))
	b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("ui-job-phone")
	b.do(chromedp.EmulateViewport(1200, 900))
	b.click(`#incident-worker-1-0 a[href*="attempt=0"]`)
	b.waitFor("pre.log", "about to be lost")
	b.click(`nav a[href="plots"]`)
	b.waitFor("figure .mark.lost title", " lost: ")
	b.until("the steps to be drawn", `document.querySelector("figcaption b").textContent === "step" && document.querySelector("path.line").getAttribute("d").startsWith("M")`)
	b.click(`nav a[href="configuration"]`)
	b.waitFor(".facts", "API_TOKEN")
	b.click(`nav a[href="../../"]`)
	b.waitFor("#rows", "broken")
}

// untilEnded waits until jobs have ended.
func untilEnded(ctx context.Context, t *testing.T, user asuser.Caller, jobs ...string) {
	t.Helper()
	for _, id := range jobs {
		for ended := false; !ended; {
			s, err := user.Status(ctx, id)
			if err != nil {
				t.Fatal(err)
			}
			ended = s.State.Done()
		}
	}
}

// openUI serves yarn-submit's pages of all jobs until the test ends, and returns their address.
func openUI(ctx context.Context, t *testing.T, user asuser.Caller) string {
	t.Helper()
	address, stop, err := user.UI(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return address
}
