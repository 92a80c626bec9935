package jobs

import (
	"context"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// counted is a store that counts what is opened.
type counted struct {
	store.Store
	opens atomic.Int32
}

func (c *counted) Open(ctx context.Context, name string) (store.Reader, error) {
	c.opens.Add(1)
	return c.Store.Open(ctx, name)
}

// TestWhatIsOverIsReadOnce: a page with a list of jobs that is open has the NameNode asked for those that go
// on, and not for all that the ResourceManager remembers.
func TestWhatIsOverIsReadOnce(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	home := &counted{Store: local}
	put := func(id, status string) {
		t.Helper()
		err := store.MkdirAll(t.Context(), home, Directory(id), 0o700)
		if err == nil {
			err = store.WriteFile(t.Context(), home, path.Join(Directory(id), proto.StatusFile), []byte(status), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const over, lost, runs = "application_1_0001", "application_1_0002", "application_1_0003"
	put(over, `{"state":"JOB_STATE_SUCCEEDED","step":"7"}`)
	put(lost, `{"state":"JOB_STATE_RUNNING","step":"8"}`)
	put(runs, `{"state":"JOB_STATE_RUNNING","step":"9","why":"it waits"}`)
	memory := &Memory{}
	list := func(opened int32) {
		t.Helper()
		now := time.Now().UnixMilli()
		e := []*proto.JobSummary{
			{Id: over, State: proto.JobState_JOB_STATE_SUCCEEDED, EndedUnixMs: 1000},
			{Id: lost, State: proto.JobState_JOB_STATE_KILLED, EndedUnixMs: now - 1000},
			{Id: runs, State: proto.JobState_JOB_STATE_RUNNING},
		}
		home.opens.Store(0)
		stepsIn(t.Context(), home, e, memory)
		if n := home.opens.Load(); n != opened || e[0].Step != 7 || e[1].Step != 8 || e[2].Step != 9 || e[2].Why != "it waits" {
			t.Errorf("opened %d times, want %d: %v", n, opened, e)
		}
	}
	list(3)
	list(2) // the state of the one that was lost may not be its last
	put(runs, `{"state":"JOB_STATE_SUCCEEDED","step":"9","why":"it waits"}`)
	list(2) // the ResourceManager does not know that yet
}
