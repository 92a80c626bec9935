// Package check checks what a machine allows jobs to do, as the current user in the
// current directory. The same checks run on the user's machine and, by package
// nodecheck, in containers on the nodes of a cluster.
package check

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"holdfast/container/sandbox"
	"holdfast/hdfsckpt/store"
)

// Level is how good a Finding is.
type Level string

// Levels.
const (
	Good Level = "ok"
	Note Level = "note" // works, with a limit
	Bad  Level = "bad"
)

// Finding is what was found out about one thing.
type Finding struct {
	Node    string `json:"node"` // empty: this machine, or the cluster as a whole
	Subject string `json:"subject"`
	Level   Level  `json:"level"`
	Text    string `json:"text"`
	// Exit is the exit code that a bad one stands for; 0: the general one.
	Exit int `json:"-"`
}

func good(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Level: Good, Text: fmt.Sprintf(format, args...)}
}

func note(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Level: Note, Text: fmt.Sprintf(format, args...)}
}

func bad(subject, format string, args ...any) Finding {
	return Finding{Subject: subject, Level: Bad, Text: fmt.Sprintf(format, args...)}
}

// Sandbox reports what tasks here can have of their own: mounts, checkpoint
// directories, addresses. exe is this binary.
func Sandbox(ctx context.Context, exe string) []Finding {
	a, err := sandbox.Probe(ctx, sandbox.Options{Exe: exe})
	if err != nil {
		return []Finding{bad("sandbox", "%v", err)}
	}
	var list []Finding
	for _, t := range []struct {
		subject, yes, cost string
		err                error
	}{
		{"private mounts", "tasks get mounts and a hosts file of their own", "tasks see the host's files", a.Namespace},
		{"checkpoint mount", "checkpoint directories can be mounted (FUSE)", "local jobs use a link to the directory; a node like this cannot run jobs with checkpoints on HDFS", a.Fuse},
		{"steering", "a task's address stays when it moves (seccomp)", "tasks that move get another address", a.Steer},
	} {
		if t.err == nil {
			list = append(list, good(t.subject, "%s", t.yes))
		} else {
			list = append(list, note(t.subject, "%v. Without it, %s", t.err, t.cost))
		}
	}
	return list
}

// Image reports whether a container that was to run in an image does; err says why not.
func Image(name string, err error) Finding {
	if err != nil {
		return bad("image", "%v", err)
	}
	return good("image", "containers run in %s; what is said of this node holds in it", name)
}

// Clock compares this machine's clock with that of a web server, which tells
// its time in whole seconds.
func Clock(ctx context.Context, servers []string) Finding {
	const subject = "clock"
	var failed error
	for _, url := range servers {
		req, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
		if err != nil {
			return bad(subject, "%v", err)
		}
		client := http.Client{Timeout: 5 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		asked := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			failed = err
			continue
		}
		resp.Body.Close()
		theirs, err := http.ParseTime(resp.Header.Get("Date"))
		if err != nil {
			failed = fmt.Errorf("%s does not tell the time: %w", url, err)
			continue
		}
		// Their time was cut to the second somewhere between asking and now.
		off := skew(asked, time.Now(), theirs)
		switch {
		case off > 4*time.Minute:
			return bad(subject, "%s apart from the ResourceManager's: Kerberos refuses more than 5 minutes, and YARN refuses containers; have both run chronyd or ntpd", off.Round(time.Second))
		case off > 5*time.Second:
			return note(subject, "%s apart from the ResourceManager's; have both run chronyd or ntpd", off.Round(time.Second))
		}
		return good(subject, "as the ResourceManager's, within %s", max(time.Second, off.Round(time.Second)))
	}
	return note(subject, "it cannot be compared with the ResourceManager's: %v", failed)
}

// skew returns by how much a clock that showed a time, cut to the second, at some
// moment between two is wrong at least.
func skew(from, to, shown time.Time) time.Duration {
	switch {
	case shown.Add(time.Second).Before(from):
		return from.Sub(shown.Add(time.Second))
	case shown.After(to):
		return shown.Sub(to)
	}
	return 0
}

// sample is how much is written and read to see that a store works.
const sample = 4 << 20

// Store writes and reads a few megabytes in a directory, and leaves nothing.
func Store(ctx context.Context, s store.Store, name string) Finding {
	const subject = "HDFS"
	content := make([]byte, sample)
	for i := range content {
		content[i] = byte(i * i >> 8)
	}
	begin := time.Now()
	if err := store.WriteFile(ctx, s, name, content, 0o600); err != nil {
		return bad(subject, "%v: checkpoints cannot be written from here; see that this machine reaches the NameNode and the DataNodes (firewall, dfs.client.use.datanode.hostname)", err)
	}
	written := time.Now()
	got, err := store.ReadFile(ctx, s, name)
	read := time.Now()
	if removing := s.Remove(ctx, name); err == nil {
		err = removing
	}
	if err == nil && string(got) != string(content) {
		err = fmt.Errorf("%s/%s was read back otherwise than it was written", s.URI(), name)
	}
	if err != nil {
		return bad(subject, "%v", err)
	}
	return good(subject, "%d MB written at %.0f MB/s and read at %.0f MB/s", sample>>20, rate(begin, written), rate(written, read))
}

func rate(from, to time.Time) float64 {
	return sample / 1e6 / max(to.Sub(from), time.Microsecond).Seconds()
}
