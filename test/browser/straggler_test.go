package browser

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
)

// lagging is a task that prints steps until it is killed. That of worker-2 becomes slow.
const lagging = `i=0; while :; do i=$((i+1)); echo "step $i"; sleep 0.2; [ {index} = 2 ] && [ $i -gt 50 ] && sleep 0.8; done`

// TestStragglerOnThePage: the page names a task that has become slow, also on a phone.
func TestStragglerOnThePage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	job, err := user.Run(ctx, "--local", "--name", "lagging", "--worker", "4", "--straggler-time", "10s", "--", "bash", "-c", lagging)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	var s *proto.JobStatus
	for s == nil || s.TrackingUrl == "" {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(ctx, t, true)
	b.open(s.TrackingUrl)
	b.waitFor("#figures .straggler", "worker-2 is slower than the others of its role")
	b.waitFor("#rows tbody tr:first-child .straggler", "times)")
	b.waitFor("#events td.straggler", "straggler")
	b.picture("straggler")
	b.do(chromedp.EmulateViewport(390, 844))
	b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.until("the tasks to be in view", `(document.getElementById("tasks").scrollIntoView(), true)`)
	b.picture("straggler-phone")
	b.open(s.TrackingUrl + "task?task=worker-2")
	b.waitFor("#task dd.straggler", "a step takes")
	b.until("its page to fit a phone", `document.documentElement.scrollWidth <= 390`)
	b.picture("straggler-task-phone")
	b.do(chromedp.EmulateViewport(1280, 900))
	b.picture("straggler-task")
}
