package recovery_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/core/journal"
	"holdfast/am/recovery"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// flaky is a store that does not answer writes while it is down.
type flaky struct {
	store.Store
	down atomic.Bool
}

func (s *flaky) Create(ctx context.Context, name string, perm fs.FileMode) (store.Writer, error) {
	if s.down.Load() {
		return nil, errors.New("the store does not answer")
	}
	return s.Store.Create(ctx, name, perm)
}

// startWriter runs the journal writer of the first master attempt on a store.
func startWriter(t *testing.T) (*recovery.JournalWriter, *flaky) {
	t.Helper()
	local, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := &flaky{Store: local}
	if err := recovery.Announce(t.Context(), dir, 1, "am:1"); err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	w := recovery.NewJournalWriter(dir, 1, logrus.NewEntry(log))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		local.Close()
	})
	return w, dir
}

// journaled reports whether the journal of the first attempt has a generation.
func journaled(t *testing.T, dir store.Store, generation int) bool {
	t.Helper()
	found, err := recovery.FindPredecessor(t.Context(), recovery.Config{Job: "job_1", Attempt: 2, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return !found.Journal.Partial && found.Journal.Generation == generation
}

func entry(generation int, writeAhead bool, send ...func()) recovery.Entry {
	return recovery.Entry{Journal: recovery.NewJournal(journal.Journal{Generation: generation}, nil), WriteAhead: writeAhead, Send: send}
}

// A message that requires write-ahead is sent once the journal is durable, however long
// that takes; and so are those behind it, in order.
func TestMessagesFollowTheirJournalEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := startWriter(t)
		dir.down.Store(true)
		var sent []string
		decided := time.Now()
		defer func() {
			if at := <-w.Sent(); !at.Equal(decided.Add(time.Second)) {
				t.Errorf("said to be sent is what was decided until %v, want %v", at, decided.Add(time.Second))
			}
		}()
		w.Enqueue(entry(7, true, func() {
			if !journaled(t, dir, 7) {
				t.Error("a message is sent before its entry is in the journal")
			}
			sent = append(sent, "first")
		}))
		synctest.Wait() // the entry is taken, and no later one with it
		second := entry(8, false, func() { sent = append(sent, "second") })
		second.Decided = decided.Add(time.Second)
		w.Enqueue(second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(sent) != 0 || len(w.Sent()) != 0 {
			t.Fatalf("without a journal, %q are sent, or said to be", sent)
		}
		dir.down.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := strings.Join(sent, " "); got != "first second" {
			t.Errorf("sent are %q", got)
		}
	})
}

// Other messages do not wait for the store, and the journal is written a little later.
func TestOtherMessagesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := startWriter(t)
		dir.down.Store(true)
		sent := false
		w.Enqueue(entry(7, false, func() { sent = true }))
		synctest.Wait()
		if !sent {
			t.Fatal("a message waits for the store")
		}
		dir.down.Store(false)
		time.Sleep(time.Second)
		synctest.Wait()
		if !journaled(t, dir, 7) {
			t.Error("the journal is not written")
		}
	})
}

// Once a successor has announced itself, nothing more is sent that requires write-ahead:
// the successor may have read the journal before the entry was written.
func TestASupersededWriterSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := startWriter(t)
		if err := recovery.Announce(t.Context(), dir, 2, "am:2"); err != nil {
			t.Fatal(err)
		}
		w.Enqueue(entry(7, true, func() { t.Error("a superseded master sends a message") }))
		synctest.Wait()
		select {
		case <-w.Superseded():
		default:
			t.Error("it does not notice its successor")
		}
	})
}

// A store that does not answer does not keep a job from ending.
func TestTheEndOfAJobDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, dir := startWriter(t)
		dir.down.Store(true)
		sent := false
		w.Enqueue(entry(7, true, func() { sent = true }))
		time.Sleep(time.Minute)
		w.JobEnds()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !sent {
			t.Error("a message waits for the store")
		}
	})
}

// The window of the liveness file begins anew after a gap.
func TestLivenessWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 10 * time.Second
		local, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		dir := &unreachable{Store: local}
		if err := recovery.Announce(t.Context(), dir, 1, "am:1"); err != nil {
			t.Fatal(err)
		}
		log := logrus.New()
		log.SetOutput(io.Discard)
		f := recovery.NewLivenessFile(dir, lease, logrus.NewEntry(log))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx)
		}()
		begin := time.Now()
		latest := func(after time.Duration) recovery.LivenessWindow {
			time.Sleep(time.Until(begin.Add(after)))
			synctest.Wait()
			return <-f.Windows()
		}
		if w := latest(time.Minute); !w.Since.Equal(begin) || !w.Until.Equal(begin.Add(time.Minute+proto.TouchLimit(lease))) {
			t.Errorf("after a minute the window is from %s to %s", w.Since.Sub(begin), w.Until.Sub(begin))
		}
		dir.down.Store(true)
		time.Sleep(time.Minute)
		dir.down.Store(false)
		if w := latest(3 * time.Minute); w.Since.Sub(begin) < 2*time.Minute {
			t.Errorf("after a gap the window is from %s to %s", w.Since.Sub(begin), w.Until.Sub(begin))
		}
		cancel()
		<-ended
	})
}

// unreachable is a store on which times cannot be changed while it is down.
type unreachable struct {
	store.Store
	down atomic.Bool
}

func (s *unreachable) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	if s.down.Load() {
		return errors.New("the store does not answer")
	}
	return s.Store.Chtimes(ctx, name, atime, mtime)
}
