package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// savingModels is a task that saves what it was given as a program of TensorFlow does: of each
// checkpoint the index last, and then the pointer.
const savingModels = `for s in 7 8 9; do
  cp given/objects-24.data-00000-of-00001 out/m-$s.data-00000-of-00001 && cp given/objects-24.index out/m-$s.index
  printf 'model_checkpoint_path: "m-%s"\n' $s > out/part && mv out/part out/checkpoint
done; exec sleep 600`

// TestCheckpointsAreChangedOnPages: in a browser, old checkpoints of a job on YARN are removed
// from HDFS on its page, through the ResourceManager's proxy, which passes on no POST; while it
// runs it is not rolled back; after its end it is, on the pages of ui, with the script and
// without.
func TestCheckpointsAreChangedOnPages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	c := testcluster.ForTest(t, testcluster.Options{NodeManagers: 1, DataNodes: 1})
	user := newUser(ctx, t)
	user.ConfDir = c.ConfDir()
	given := filepath.Join(user.Dir, "given")
	if err := os.Mkdir(given, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"objects-24.index", "objects-24.data-00000-of-00001"} {
		b, err := os.ReadFile("../../hdfsckpt/tfbundle/testdata/" + name)
		if err == nil {
			err = os.WriteFile(filepath.Join(given, name), b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	uri := c.HDFS() + "/saved"
	// Without authentication, the ResourceManager takes everybody for this user.
	job, err := user.Run(ctx, "--name", "saving", "--worker", "1", "--worker-memory", "256m", "--modify-acl", "dr.who", "--files", "given/", "--checkpoint", "./out="+uri, "--", "sh", "-c", savingModels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = user.Call(context.Background(), "kill", job) }) // it may have ended
	for s := (*proto.JobStatus)(nil); s == nil || s.CompleteStep < 9; {
		if s, err = user.Status(ctx, job); err != nil {
			t.Fatal(err)
		}
	}
	// steps are those of the checkpoints in the directory, the one that is current marked.
	steps := func() string {
		t.Helper()
		out, err := user.Call(ctx, "ckpt", "ls", uri, "--output", "json")
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Checkpoints []struct {
				Step     int
				Current  bool
				Retained bool
			}
		}
		if err := json.Unmarshal(out, &list); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, c := range list.Checkpoints {
			if c.Retained {
				continue
			}
			text += fmt.Sprintf(" %d", c.Step)
			if c.Current {
				text += "*"
			}
		}
		return text
	}
	// It is complete before the program names it.
	for got := ""; got != " 7 8 9*"; got = steps() {
		if ctx.Err() != nil {
			t.Fatalf("there are%s", got)
		}
	}
	b := newBrowser(ctx, t, true)
	b.do(chromedp.EmulateViewport(1280, 800))
	b.open("http://" + c.RMWeb() + "/proxy/" + job + "/checkpoints")
	b.click(`a[href="prune?dir=0"]`)
	b.waitFor("#change", "There is nothing to remove")
	b.until("another number to be typed", `(() => { const i = document.querySelector("input[name=keep]"); i.value = 2; return true })()`)
	b.click("#change form.filter button")
	b.waitFor("#change", "1 to remove")
	b.pictures("prune")
	if got := steps(); got != " 7 8 9*" {
		t.Errorf("while the plan is shown there are%s", got)
	}
	b.click("#change .danger")
	b.waitFor("#change", "1 checkpoint was removed")
	b.picture("pruned")
	if got := steps(); got != " 8 9*" {
		t.Errorf("after the prune there are%s", got)
	}
	b.open("http://" + c.RMWeb() + "/proxy/" + job + "/checkpoint?at=m-8")
	b.click(`#checkpoint a[href^="rollback?"]`)
	b.waitFor("#change", "this job writes to the directory")
	if strings.Contains(b.html(), `class="danger"`) {
		t.Error("a job that runs can be rolled back")
	}
	if out, err := user.Call(ctx, "ckpt", "rollback", uri, "8", "--yes"); err == nil || !strings.Contains(err.Error(), "while "+job+" writes to it") {
		t.Errorf("the command says of it: %s %v", out, err)
	}
	for said := ""; !strings.Contains(said, "who=dr.who"); { // the log is copied every few seconds
		out, err := user.Call(ctx, "logs", job, "am", "--grep", "audit=prune")
		if err != nil {
			t.Fatalf("the log of the application master does not say who has removed checkpoints: %v", err)
		}
		said = string(out)
	}
	if _, err := user.Call(ctx, "kill", job); err != nil {
		t.Fatal(err)
	}

	address := openUI(ctx, t, user)
	b.open(address)
	b.click(`a[href="jobs/` + job + `/"]`)
	b.click(`nav a[href="checkpoints"]`)
	b.click(`.checkpoints .step a[href*="m-8"]`)
	b.click(`#checkpoint a[href^="rollback?"]`)
	b.waitFor("#change", "1 newer checkpoint stays")
	b.pictures("rollback")
	b.click("#change .danger")
	b.waitFor("#change", "Tasks that start now continue from step 8")
	if got := steps(); got != " 8* 9" {
		t.Errorf("after the rollback there are%s", got)
	}

	plain := newBrowser(ctx, t, false)
	plain.open(address)
	plain.open(strings.Split(address, "?")[0] + "jobs/" + job + "/rollback?dir=0&step=9&name=m-9")
	plain.do(chromedp.Click(chromedp.CSS("#change .danger")))
	for text := ""; !strings.Contains(text, "start now continue from step 9"); {
		text, _ = chromedp.Run(plain.ctx, chromedp.OuterHTML(chromedp.CSS("body"))) // while another page is opened it fails
		if ctx.Err() != nil {
			t.Fatalf("without the script it is not rolled back: %s", text)
		}
	}
	if got := steps(); got != " 8 9*" {
		t.Errorf("after the rollback without the script there are%s", got)
	}
}
