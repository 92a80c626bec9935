package browser

import (
	"context"
	"encoding/base64"
	"fmt"
	"html"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
	"holdfast/test/pty"
)

// savingSteps is a task that prints steps until it is killed, and of which the first saves.
const savingSteps = `i=0; while :; do i=$((i+1)); echo "step $i loss: 0.$((9000 / (i + 9)))"; sleep 0.2
[ {task} = worker-0 ] && [ $((i % 20)) = 0 ] && mkdir -p out/step-$i && echo x > out/step-$i/data && touch out/step-$i/COMMITTED; done`

// terminal is a page that shows what a terminal does.
const terminal = `<!doctype html><meta charset="utf-8"><style>
body { margin: 0; background: #14171a; }
pre { margin: 0; padding: 16px 20px; display: inline-block; color: #e4e7ea; font: 15px/1.4 "DejaVu Sans Mono", "Liberation Mono", monospace; }
</style><pre>%s</pre>`

// TestTopOnATerminal: top in a terminal shows a job that has lost a worker and goes on, and a
// picture of that is taken.
func TestTopOnATerminal(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	user := newUser(ctx, t)
	job, err := user.Run(ctx, "--local", "--name", "mnist", "--framework", "none", "--worker", "3", "--total-steps", "5000",
		"--checkpoint", "./out=ck", "--", "sh", "-c", savingSteps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	until := func(ok func(*proto.JobStatus) bool) *proto.JobStatus {
		t.Helper()
		for {
			s, err := user.Status(ctx, job)
			if err != nil {
				t.Fatal(err)
			}
			if ok(s) {
				return s
			}
		}
	}
	s := until(func(s *proto.JobStatus) bool { return s.CompleteStep > 0 && len(s.Tasks) == 3 && s.Tasks[1].Step > 0 })
	if err := syscall.Kill(int(s.Tasks[1].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(func(s *proto.JobStatus) bool {
		return s.Tasks[1].Attempt == 1 && s.Tasks[1].Step > 5 && s.Tasks[1].CpuCores > 0
	})

	const columns, rows = 110, 16
	x := pty.Start(t, user.Command(ctx, "top", job), columns, rows)
	shown := func(texts ...string) bool {
		all := strings.Join(x.Screen(), "\n")
		for _, text := range texts {
			if !strings.Contains(all, text) {
				return false
			}
		}
		return true
	}
	x.Until("the job", func() bool {
		return shown(job+"  mnist", "/5000", "checkpoint ", "worker 3/3", "killed by SIGKILL", "q quit")
	})
	x.Press("j")
	x.Until("a task that is selected", func() bool { return shown(">  worker-0") })
	screen := x.Screen()
	for _, line := range screen {
		if n := len([]rune(line)); n > columns {
			t.Errorf("a line has %d columns: %s", n, line)
		}
	}
	b := newBrowser(ctx, t, true)
	b.open("data:text/html;base64," + base64.StdEncoding.EncodeToString(fmt.Appendf(nil, terminal, html.EscapeString(strings.Join(screen, "\n")))))
	size, err := look(b.ctx, chromedp.Evaluate[[]int64](`[document.querySelector("pre").offsetWidth, document.querySelector("pre").offsetHeight]`))
	if err != nil || len(size) != 2 {
		t.Fatal(size, err)
	}
	b.do(chromedp.EmulateViewport(size[0], size[1]))
	b.picture("top")
	x.Press("q")
	if code := x.Code(); code != 0 {
		t.Errorf("top ended with %d", code)
	}
}
