package notify_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/notify"
	"holdfast/proto"
)

// limit bounds what takes no time when all is well.
const limit = 30 * time.Second

// secret is a part of every URL here.
const secret = "T0KEN"

// bench is a notifier that runs, and what it logs and notes.
type bench struct {
	*notify.Notifier
	stop func() // and wait for its end

	mu    sync.Mutex
	log   bytes.Buffer
	notes []string
}

// Write takes a line of the log.
func (b *bench) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(line)
}

// told returns the log and the notes.
func (b *bench) told() (log string, notes []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String(), b.notes
}

func start(t *testing.T, answer http.HandlerFunc) *bench {
	t.Helper()
	server := httptest.NewServer(answer)
	b := &bench{}
	log := logrus.New()
	log.SetOutput(b)
	b.Notifier = notify.New(notify.Config{URL: server.URL + "/" + secret + "?key=" + secret, Log: logrus.NewEntry(log), Note: func(text string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.notes = append(b.notes, text)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.Run(ctx)
	}()
	b.stop = func() { cancel(); <-ended }
	t.Cleanup(func() {
		b.stop()
		server.Close()
		if log, notes := b.told(); strings.Contains(log+strings.Join(notes, ""), secret) {
			t.Errorf("a secret is told:\n%s\n%q", log, notes)
		}
	})
	return b
}

func event(n int) *proto.Notification {
	return &proto.Notification{Id: "local-1", Event: notify.Recovered, Task: fmt.Sprintf("worker-%d", n), State: proto.JobState_JOB_STATE_RUNNING, AtUnixMs: 1_700_000_000_000}
}

// TestNotificationsArriveInOrder: one at a time, as the JSON that is documented.
func TestNotificationsArriveInOrder(t *testing.T) {
	var open, most atomic.Int32
	var got []string
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		text, err := io.ReadAll(r.Body)
		var v map[string]any
		if err != nil || json.Unmarshal(text, &v) != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Query().Get("key") != secret {
			t.Errorf("%s %s: %s", r.Method, r.URL, text)
		}
		if v["json_version"] != float64(proto.JSONVersion) || v["event"] != "recovered" || v["state"] != "running" || v["at"] != "2023-11-14T22:13:20.000Z" {
			t.Errorf("posted was %s", text)
		}
		got = append(got, fmt.Sprint(v["task"]))
	})
	var want []string
	for n := range 10 {
		b.Add(event(n))
		want = append(want, event(n).Task)
	}
	b.Wait(limit)
	b.stop()
	if fmt.Sprint(got) != fmt.Sprint(want) || most.Load() != 1 {
		t.Errorf("%d at a time: %v", most.Load(), got)
	}
}

// TestWhatFailsIsTriedAgain: unless the answer says that it is pointless.
func TestWhatFailsIsTriedAgain(t *testing.T) {
	for status, again := range map[int]bool{
		http.StatusServiceUnavailable: true, http.StatusTooManyRequests: true,
		http.StatusNotFound: false, http.StatusForbidden: false, http.StatusFound: false,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			var calls atomic.Int32
			b := start(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/"+secret {
					t.Errorf("%s was asked for", r.URL.Path)
				}
				if calls.Add(1) == 1 {
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(status)
				}
			})
			b.Add(event(0))
			b.Wait(limit)
			b.stop()
			_, notes := b.told()
			if again && (calls.Load() != 2 || len(notes) != 0) || !again && (calls.Load() != 1 || len(notes) != 1 || !strings.Contains(notes[0], fmt.Sprint(status))) {
				t.Errorf("%d calls, and the notes %q", calls.Load(), notes)
			}
		})
	}
}

// TestWhatNeverArrivesIsNotedOnce: the log has each.
func TestWhatNeverArrivesIsNotedOnce(t *testing.T) {
	b := start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	b.SetTries(10 * time.Millisecond)
	b.Add(event(0))
	b.Add(event(1))
	b.Wait(limit)
	b.stop()
	log, notes := b.told()
	if len(notes) != 1 || !strings.Contains(notes[0], "502") || !strings.Contains(notes[0], "http://127.0.0.1:") || !strings.Contains(notes[0], "--notify") {
		t.Errorf("noted is %q", notes)
	}
	if strings.Count(log, "was not notified that worker-0 recovered") != 1 || strings.Count(log, "was not notified that worker-1 recovered") != 1 {
		t.Errorf("the log has not both:\n%s", log)
	}
}

// TestWhatWaitsIsBounded: the oldest is dropped, and what was not posted in the end is
// logged.
func TestWhatWaitsIsBounded(t *testing.T) {
	asked, hang := make(chan struct{}), make(chan struct{})
	defer close(hang)
	b := start(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	b.Add(event(0))
	<-asked
	for n := range 40 {
		b.Add(event(100 + n))
	}
	log, _ := b.told()
	for n := range 40 {
		if dropped := strings.Contains(log, fmt.Sprintf("worker-%d recovered is dropped", 100+n)); dropped != (n < 8) {
			t.Errorf("worker-%d was dropped: %v", 100+n, dropped)
		}
	}
	begin := time.Now()
	b.Wait(10 * time.Millisecond)
	b.stop()
	if took := time.Since(begin); took > limit {
		t.Errorf("it has taken %s to stop", took)
	}
	log, _ = b.told()
	if n := strings.Count(log, "no time left"); n != 33 || !strings.Contains(log, "worker-139 recovered: there was no time left") {
		t.Errorf("%d were not posted in the end:\n%s", n, log)
	}
}
