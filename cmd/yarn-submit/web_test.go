package main

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/proto"
)

// A role with a command of its own serves a page, to which the job's page, status and
// describe lead.
func TestAPageOfATask(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "index.html"), "what the task shows")
	write(t, filepath.Join(p.dir, "serve.py"), `import http.server, sys
s = http.server.ThreadingHTTPServer(("", int(sys.argv[1])), http.server.SimpleHTTPRequestHandler)
print("serves", flush=True)
s.serve_forever()
`)
	id := p.detached("--framework", "tensorflow", "--worker", "1", "--files", "index.html,serve.py",
		"--tensorboard", "1", "--tensorboard-command", "exec python3 serve.py {port}", "--", "sleep", "1000")
	s := p.until(id, "the page", func(s *proto.JobStatus) bool {
		out, _, code := p.call("logs", id, "tensorboard", "--grep", "serves")
		return code == 0 && out != "" && s.Tasks[0].WebUrl+s.Tasks[1].WebUrl != ""
	})
	page := get(t, s.TrackingUrl)
	m := regexp.MustCompile(`href="(web/tensorboard-0/[^"]*)" rel="noreferrer">page</a>`).FindAllStringSubmatch(page, -1)
	if len(m) != 1 {
		t.Fatalf("the job's page has the links %q:\n%s", m, page)
	}
	own := s.Tasks[0].WebUrl + s.Tasks[1].WebUrl // one of them has one
	for _, address := range []string{s.TrackingUrl + m[0][1], own} {
		if text := get(t, address); text != "what the task shows" {
			t.Errorf("%s leads to %q", address, text)
		}
	}
	out, _, _ := p.call("status", id)
	contains(t, out, fmt.Sprintf("page of tensorboard-0: %s\n", own))
	out, _, _ = p.call("describe", id, "tensorboard-0")
	contains(t, out, "its page", own)
	if out, _, _ := p.call("describe", id, "worker-0"); strings.Contains(out, "its page") {
		t.Errorf("the worker has a page:\n%s", out)
	}
	if out, errs, code := p.call("kill", id); code != 0 {
		t.Errorf("kill ended with %d: %s%s", code, out, errs)
	}
	if out, _, _ := p.call("status", id); strings.Contains(out, "page of") {
		t.Errorf("the page of a task that has ended is told:\n%s", out)
	}
}

func get(t *testing.T, address string) string {
	t.Helper()
	r, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", address, r.Status, err)
	}
	return string(text)
}
