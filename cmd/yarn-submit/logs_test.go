package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/proto"
)

// TestLogsHaveTimes: a job's output is shown with the times at which it was written, and
// from one of them on, while it runs and after its end.
func TestLogsHaveTimes(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "1", "--", "sh", "-c", "echo early; echo too; until [ -e "+p.dir+"/go ]; do sleep 0.05; done; echo late; until [ -e "+p.dir+"/end ]; do sleep 0.05; done")
	stamped := regexp.MustCompile(`(?m)^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) (\w+)$`)
	// written waits for a line, and returns when it was written.
	written := func(line string) time.Time {
		t.Helper()
		for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
			out, errs, code := p.call("logs", id, "--timestamps")
			if code != 0 || errs != "" && !strings.Contains(errs, "written nothing") {
				t.Fatalf("logs ended with %d: %s%s", code, out, errs)
			}
			for _, m := range stamped.FindAllStringSubmatch(out, -1) {
				if at, err := time.Parse(time.RFC3339, m[1]); m[2] == line && err == nil {
					return at
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("%q is not in the log:\n%s", line, out)
			}
		}
	}
	begin := time.Now()
	early := written("early")
	if d := early.Sub(begin); d < -limit || d > limit {
		t.Errorf("what was written around %s has the time %s", begin, early)
	}
	<-time.After(time.Until(early.Add(3 * time.Second))) // the times are to the second
	write(t, filepath.Join(p.dir, "go"), "")
	late := written("late")
	if late.Sub(early) < 2*time.Second {
		t.Errorf("the lines have the times %s and %s", early, late)
	}
	look := func(when string) {
		t.Helper()
		since := late.Format(time.RFC3339)
		for args, want := range map[string]string{
			"worker-0 --attempt 0 --since " + since:                               "late\n",
			"worker-0 --attempt 0 --since " + early.Format(time.RFC3339):          "early\ntoo\nlate\n",
			"worker-0 --attempt 0 --tail 2 --since " + early.Format(time.RFC3339): "too\nlate\n",
			"worker-0 --attempt 0 --grep o --timestamps":                          early.Format(time.RFC3339) + " too\n",
			"--output json --timestamps --since " + since:                         `{"task":"worker-0","attempt":0,"time":"` + since + `","text":"late"}` + "\n",
		} {
			if out, errs, code := p.call(append([]string{"logs", id}, strings.Fields(args)...)...); code != 0 || out != want || errs != "" {
				t.Errorf("%s, logs %s ended with %d: %q, want %q; %s", when, args, code, out, want, errs)
			}
		}
	}
	<-time.After(time.Until(late.Add(2 * time.Second)))
	if out, errs, code := p.call("logs", id, "--since", "0s"); code != 0 || out != "" || !strings.Contains(errs, "nothing was written since 20") {
		t.Errorf("logs of what is not written yet ended with %d: %s%s", code, out, errs)
	}
	look("while it runs")
	write(t, filepath.Join(p.dir, "end"), "")
	p.until(id, "its end", func(s *proto.JobStatus) bool { return s.State.Done() })
	look("after its end")

	for _, c := range []struct{ args, want string }{
		{"--since soon", "how long ago"}, {"am --since 5m", "--grep"}, {"--agent --timestamps", "--grep"},
	} {
		if _, errs, code := p.call(append([]string{"logs", id}, strings.Fields(c.args)...)...); code != client.ExitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("logs %s ended with %d: %s", c.args, code, errs)
		}
	}
	if err := os.Remove(filepath.Join(p.home, "jobs", id, proto.LogsDir, "worker-0", "0.times")); err != nil {
		t.Fatal(err)
	}
	out, errs, code := p.call("logs", id, "--since", "1s", "--timestamps")
	if code != 0 || !strings.HasSuffix(out, "early\ntoo\nlate\n") || !strings.Contains(errs, "attempt 0 of worker-0 were written is not known") {
		t.Errorf("without times, logs ended with %d: %s%s", code, out, errs)
	}
}
