package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestCheckpointsThroughTheProxy: a running job's checkpoints on HDFS are looked into by its
// page, down to a tensor, compared and verified, through the ResourceManager's proxy.
func TestCheckpointsThroughTheProxy(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	model, err := filepath.Abs("../../hdfsckpt/torchfile/testdata/train-40.pt")
	must(t, err)
	j := w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--files", model, "--checkpoint", "./out="+c.HDFS()+"/looked-into",
		"--", "sh", "-c", "for step in 10 20; do cp train-40.pt out/part && mv out/part out/model-$step.pt; done; exec sleep 600")
	j.until(long, "both to be complete", func(s *proto.JobStatus) bool { return s.CompleteStep == 20 })
	at := func(name string) string { return url.QueryEscape(name) }
	for _, x := range []struct {
		address string
		want    []string
	}{
		{"checkpoints", []string{c.HDFS() + "/looked-into", `<a href="checkpoint?at=model-20.pt&amp;dir=0">20</a>`, `class="sealed"`, `class="tag"`}},
		{"checkpoint?at=model-10.pt", []string{"model.0.weight", "<code>", "<button>Verify</button>"}},
		{"checkpoint?at=model-10.pt&verify=1", []string{"All is as it should be", "its manifest"}},
		{"tensor?at=model-10.pt&tensor=" + at("model.0.weight"), []string{"<dt>Range", "<svg role=\"img\"", "</title></rect>"}},
		{"difference?from=model-10.pt&to=model-20.pt", []string{"All tensors are the same"}},
		{"tensor.json?at=model-10.pt&tensor=" + at("model.0.weight"), []string{`{"json_version":1,"name":"model.0.weight","dtype":"float32"`}},
	} {
		missing := x.want
		text := ""
		for end := time.Now().Add(long); len(missing) > 0 && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			answer, err := http.Get("http://" + c.RMWeb() + "/proxy/" + j.id + "/" + x.address)
			must(t, err)
			all, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			must(t, err)
			text = string(all)
			var left []string
			for _, want := range x.want {
				if !strings.Contains(text, want) {
					left = append(left, want)
				}
			}
			missing = left
		}
		if len(missing) > 0 {
			t.Errorf("%s does not have %q:\n%s", x.address, missing, text)
		}
	}
}

// TestAPageOfATask: the job's page leads, through the ResourceManager's proxy, to what a role
// with a command of its own serves, wherever the task is.
func TestAPageOfATask(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	j := where{c}.start(t, "", "--framework", "tensorflow", "--worker", "1", "--worker-memory", "256m", "--tensorboard", "1", "--tensorboard-memory", "256m",
		"--tensorboard-command", "echo what it shows > index.html; exec python3 -m http.server {port}", "--", "sleep", "600")
	served := func() error {
		page, err := textAt("http://" + c.RMWeb() + "/proxy/" + j.id + "/")
		if err != nil {
			return err
		}
		m := webLink.FindStringSubmatch(page)
		if m == nil {
			return errors.New("the job's page has no link")
		}
		text, err := textAt("http://" + c.RMWeb() + "/proxy/" + j.id + "/" + m[1])
		if err == nil && text != "what it shows\n" {
			err = fmt.Errorf("%s shows %q", m[1], text)
		}
		return err
	}
	err := errors.New("nothing was asked yet")
	for end := time.Now().Add(long); err != nil && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		err = served()
	}
	if err != nil {
		t.Error(err)
	}
}

// webLink matches the link to the page of a task.
var webLink = regexp.MustCompile(`href="(web/[^"]+)" rel="noreferrer">page</a>`)

func textAt(address string) (string, error) {
	answer, err := http.Get(address)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, answer.Status)
	}
	return string(text), err
}
