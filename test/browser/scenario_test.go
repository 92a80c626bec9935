package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
	"holdfast/test/asuser"
	"holdfast/test/testcluster"
)

// training is a job with parameter servers, whose first worker saves what it was given; workers
// print steps.
const training = `case {task} in ps-*) echo "serves"; exec sleep 600;; worker-0) for f in given/*; do cp $f out/part && mv out/part out/${f##*/}; sleep 0.2; done;; esac; ` + counting

// givenModels writes models of some steps for a job to save, and returns their directory.
func givenModels(t *testing.T, user asuser.Caller) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(user.Dir, "given"), 0o700); err != nil {
		t.Fatal(err)
	}
	for step := 100; step <= 400; step += 100 {
		writeModel(t, filepath.Join(user.Dir, "given", fmt.Sprintf("model-%d.safetensors", step)), 6, step)
	}
}

// TestLongAJobOnYARNAndAfterItsEnd: a job on YARN is watched through the ResourceManager's proxy from
// its first task to a loss, its curves, the histogram of a tensor and a log that grows; and the
// same is there on the pages of ui when it has ended.
func TestLongAJobOnYARNAndAfterItsEnd(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
	defer cancel()
	c := testcluster.ForTest(t, testcluster.Options{NodeManagers: 2, DataNodes: 1})
	user := newUser(ctx, t)
	user.ConfDir = c.ConfDir()
	givenModels(t, user)
	job, err := user.Run(ctx, "--name", "training", "--framework", "none", "--ps", "2", "--worker", "2", "--ps-memory", "256m", "--worker-memory", "256m",
		"--files", "given/", "--checkpoint", "./out="+c.HDFS()+"/saved", "--", "sh", "-c", training)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	var s *proto.JobStatus
	for s == nil || s.State != proto.JobState_JOB_STATE_RUNNING {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(ctx, t, true)
	page := "http://" + c.RMWeb() + "/proxy/" + job + "/"
	b.open(page)

	// The tasks appear, and the page follows them without being loaded anew.
	b.until("the page to be marked", `window.untouched = true`)
	for _, task := range []string{"ps-0", "ps-1", "worker-0", "worker-1"} {
		b.until(task+" to run", fmt.Sprintf(`(r => r?.children[1].textContent === "running" && r.children[3].textContent !== "")(document.querySelector('#rows a[href="task?task=%s"]')?.closest("tr"))`, task))
	}
	b.until("what a restart would take", `/continues from step 400, sealed/.test(document.querySelector("#figures .restart")?.textContent)`)

	// ps-1 is killed, and is back.
	pid := 0
	for pid == 0 {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
		for _, k := range s.Tasks {
			if k.Task == "ps-1" && k.State == proto.TaskState_TASK_STATE_RUNNING {
				pid = int(k.Pid)
			}
		}
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	b.waitFor("#incident-ps-1-0 .recovered", "back after")
	b.until("its mark on the timeline", `[...document.querySelectorAll(".timeline tr")].some((r) => r.querySelector("th").textContent === "ps-1" && r.querySelector('a[href="#incident-ps-1-0"] title')?.textContent.includes("lost: "))`)
	b.click(`.timeline a[href="#incident-ps-1-0"]`)
	b.waitFor("#incident-ps-1-0[open] .facts", "killed by SIGKILL")
	b.until("the head to count it, in the page that was opened", `document.querySelector('#figures a[href="#incidents"]').textContent === "1" && window.untouched`)
	b.pictures("yarn-job")

	// The curve grows.
	b.click(`nav a[href="plots"]`)
	b.until("the loss to fall", `(() => { const p = document.querySelector("figure path.line"); window.first ??= p?.getAttribute("d"); return document.querySelector("figcaption b")?.textContent === "loss" && window.first && p.getAttribute("d").length > window.first.length })()`)
	b.waitFor("figure .mark.lost title", "ps-1 lost: ")
	b.picture("yarn-plots")

	// A checkpoint is opened down to the histogram of a tensor; and any step is asked for.
	b.open(page)
	b.click(`#figures .restart a`)
	b.histogram()
	b.picture("yarn-tensor")
	b.open(page)
	b.do(chromedp.Focus(chromedp.CSS(".ask input")), chromedp.KeyEvent("300\r"))
	b.waitFor(".answer", "Yes, after a rollback to it; step 300 is sealed, and tasks that start now continue from step 400.")
	b.pictures("yarn-answer")

	// A log is followed; what YARN has of the container is a link away.
	b.open(page + "task?task=worker-0")
	b.until("the log to grow", `(() => { const n = document.querySelector("pre.log")?.textContent.split("\n").length; window.first ??= n; return n > window.first + 2 })()`)
	b.picture("yarn-task")
	logs, err := look(b.ctx, chromedp.Evaluate[string](`document.querySelector('#task a[href*="/node/containerlogs/"]').href`))
	if err != nil {
		t.Fatal(err)
	}
	b.open(logs)
	b.until("the NodeManager to show the agent's log", `document.body?.textContent.includes("agent.log") ?? false`)
	b.open(page)
	b.click(`a[href*="/node/containerlogs/"]`)
	b.until("the NodeManager to show the application master's log", `document.body?.textContent.includes("stderr") ?? false`)

	// After the end, the same is on the pages of ui.
	if _, err := user.Call(ctx, "kill", job); err != nil {
		t.Fatal(err)
	}
	address := openUI(ctx, t, user)
	b.open(address)
	b.click(`a[href="jobs/` + job + `/"]`)
	b.waitFor(".title .state", "killed")
	b.until("what a restart would take", `/continues from step 400, sealed/.test(document.querySelector("#figures .restart")?.textContent)`)
	b.click(`.timeline a[href="#incident-ps-1-0"]`)
	b.waitFor("#incident-ps-1-0[open] .facts", "killed by SIGKILL")
	b.pictures("yarn-job-ended")
	b.click(`nav a[href="plots"]`)
	b.waitFor("figure .mark.lost title", "ps-1 lost: ")
	b.until("the loss to be drawn", `document.querySelector("figcaption b").textContent === "loss" && document.querySelector("path.line").getAttribute("d").length > 100`)
	b.click(`nav a[href="checkpoints"]`)
	b.click(`.checkpoints .step a[href*="model-400"]`)
	b.histogram()
	b.open(strings.Split(address, "?")[0] + "jobs/" + job + "/task?task=ps-1&attempt=0")
	b.waitFor("pre.log", "serves")
}

// histogram goes from a checkpoint's page to the histogram of one of its tensors.
func (b browser) histogram() {
	b.t.Helper()
	b.waitFor("#rows", "18 tensors")
	b.click(`#rows a[href*="layers.5.dense.weight"]`)
	b.waitFor("#tensor .facts", "Range")
	b.until("40 bars", `document.querySelectorAll("#histogram rect").length === 40`)
}
