package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/logtimes"
	"holdfast/runtime/tasklog"
)

// failing is a store that fails as long as it is told to.
type failing struct {
	store.Store
	down   atomic.Bool
	failed chan struct{} // closed when it has failed
	once   sync.Once
}

func (f *failing) Append(ctx context.Context, name string, perm fs.FileMode) (store.Appender, error) {
	a, err := f.Store.Append(ctx, name, perm)
	return &failingAppender{a, f}, err
}

type failingAppender struct {
	store.Appender
	of *failing
}

func (a *failingAppender) Write(b []byte) (int, error) {
	if a.of.down.Load() {
		a.of.once.Do(func() { close(a.of.failed) })
		return 0, errors.New("the store is down")
	}
	return a.Appender.Write(b)
}

// TestTimesOfTheCopy: each line of the copy has the time at which it was written, and not
// that at which it was copied, also when it had to wait for the store.
func TestTimesOfTheCopy(t *testing.T) {
	local, err := store.NewOpener(nil).Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &failing{Store: local, failed: make(chan struct{})}
	s.down.Store(true)
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	o, w, err := New(filepath.Join(t.TempDir(), "log"), "logs/worker-0/0.log", tasklog.NewStepFinder(tasklog.DefaultSteps), logrus.NewEntry(quiet))
	if err != nil {
		t.Fatal(err)
	}
	seconds := []int64{1000, 1003, 1003, 5000}
	write := func(i int) { o.take(time.Unix(seconds[i], 0), fmt.Appendf(nil, "line %d\n", i)) }
	write(0)
	write(1)
	copying := make(chan struct{})
	go func() {
		defer close(copying)
		o.CopyTo(func(context.Context) (store.Store, error) { return s, nil })
	}()
	<-s.failed
	write(2)
	s.down.Store(false)
	write(3)
	w.Close()
	<-copying
	read := func(name string) string {
		text, err := store.ReadFile(t.Context(), local, name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if log := read("logs/worker-0/0.log"); log != "line 0\nline 1\nline 2\nline 3\n" {
		t.Fatalf("the log is %q", log)
	}
	index := logtimes.Parse([]byte(read("logs/worker-0/0.times")))
	for i, want := range seconds {
		if got, ok := index.At(int64(i * len("line 0\n"))); !ok || got.Unix() != want {
			t.Errorf("line %d was written at %d, and the times say %d", i, want, got.Unix())
		}
	}
}

// TestWhatDoesNotFitIsDropped: with its times.
func TestWhatDoesNotFitIsDropped(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(int64(n), 0) }
	c := copied{text: bytes.Repeat([]byte("x"), copyMost+30), parts: []part{{0, at(1)}, {10, at(2)}, {20, at(3)}, {40, at(4)}}}
	if n := c.limit(); n != 30 || len(c.text) != copyMost || fmt.Sprint(c.parts) != fmt.Sprint([]part{{0, at(3)}, {10, at(4)}}) {
		t.Errorf("%d bytes are dropped, and the parts are %v", n, c.parts)
	}
	c.prepend(copied{text: []byte("before"), parts: []part{{0, at(2)}}})
	if n := c.limit(); n != 6 || fmt.Sprint(c.parts) != fmt.Sprint([]part{{0, at(3)}, {10, at(4)}}) {
		t.Errorf("%d bytes are dropped, and the parts are %v", n, c.parts)
	}
}
