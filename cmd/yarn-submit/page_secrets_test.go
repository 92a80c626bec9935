package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"holdfast/proto"
)

// TestNoPageHasASecret: no page of a job, and nothing that pages lead to, has the token of ui, the
// key to the job's own page, the job's keys or what its environment and flags hide: on its own
// pages while it runs, and on those of ui then and after the end.
func TestNoPageHasASecret(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "job.yaml"), "notify: http://127.0.0.1:1/hooked?key=posted-in-secret\nenv: {API_TOKEN: kept-from-pages}\n")
	id := p.detached("-f", "job.yaml", "--name", "secretive", "--worker", "1", "--checkpoint", "./out=ck", "--", "sh", "-c",
		`mkdir -p out/step-5; touch out/step-5/data out/step-5/COMMITTED; echo "step 5 loss: 0.5"; exec sleep 1000`, "--api-key", "typed-in-secret")
	s := p.until(id, "a step", func(s *proto.JobStatus) bool { return s.Step == 5 && s.CompleteStep == 5 })
	u := p.ui("--checkpoint", "./ck")
	page, err := url.Parse(s.TrackingUrl)
	if err != nil {
		t.Fatal(err)
	}
	key, token := strings.Trim(page.Path, "/"), u.Query().Get("token")
	secrets := map[string]string{
		"ui's token": token, "the key to the page": key, "a variable of the environment": "kept-from-pages", "a flag": "typed-in-secret", "a URL": "posted-in-secret",
	}
	text, err := os.ReadFile(filepath.Join(p.home, "jobs", id, proto.KeysFile))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]string
	if err := json.Unmarshal(text, &keys); err != nil || len(keys) < 2 {
		t.Fatalf("the job's keys: %v", err)
	}
	for name, value := range keys {
		secrets["the job's "+name] = value
		lines := strings.Split(strings.TrimSpace(value), "\n")
		secrets["a line of the job's "+name] = lines[len(lines)/2]
	}
	for name, value := range secrets {
		if len(value) < 12 {
			t.Fatalf("%s is %q", name, value)
		}
	}

	search := func(c *http.Client, from string, atLeast int) {
		t.Helper()
		asked := map[string]bool{}
		todo := []string{from}
		for len(todo) > 0 && len(asked) < 400 {
			address := todo[0]
			todo = todo[1:]
			if asked[address] {
				continue
			}
			asked[address] = true
			r, err := c.Get(address)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r.Body)
			r.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			body := string(b)
			for name, value := range r.Header {
				if name != "Set-Cookie" { // which scripts cannot read
					body += "\n" + strings.Join(value, "\n")
				}
			}
			at := r.Request.URL
			for name, value := range secrets {
				found := strings.Contains(html.UnescapeString(body), value)
				// The address of the job's own page, which status prints, is in status.json and jobs.json.
				if value == key && strings.HasSuffix(at.Path, ".json") {
					found = strings.Contains(strings.ReplaceAll(body, s.TrackingUrl, ""), value)
				}
				if found {
					t.Errorf("%s has %s:\n%s", strings.ReplaceAll(at.String(), key, "KEY"), name, body)
				}
			}
			if !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") {
				continue
			}
			for _, m := range regexp.MustCompile(`(?:href|src|action)="([^"#]*)`).FindAllStringSubmatch(string(b), -1) {
				next, err := at.Parse(html.UnescapeString(m[1]))
				if err != nil {
					t.Fatal(err)
				}
				if next.Host == at.Host {
					todo = append(todo, next.String())
				}
			}
		}
		if len(asked) < atLeast {
			t.Errorf("%d addresses were found", len(asked))
		}
	}
	search(http.DefaultClient, s.TrackingUrl, 15)
	search(u.browser(t), "http://"+u.Host+"/", 25)
	p.call("kill", id)
	search(u.browser(t), "http://"+u.Host+"/jobs/"+id+"/", 15)
}
