package e2e

import (
	"errors"
	"io/fs"
	"os/user"
	"path"
	"strings"
	"testing"
	"time"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// TestOldJobsGoFromHDFS: who submits a job has the directories removed, in its home on HDFS, of
// jobs in which nothing has changed for long, and is told so; `yarn-submit gc` does the same. Both
// leave that of a job that waits in its queue, in which nothing changes either, and of one that the
// cluster does not know and that has not begun: it may wait in another's.
func TestOldJobsGoFromHDFS(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	hadoop, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	home, err := store.Open(t.Context(), c.HDFS()+"/user/"+me.Username+"/.holdfast", hadoop)
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	put := func(id string, days int) {
		t.Helper()
		dir := jobs.Directory(id)
		for _, name := range []string{"logs/worker-0/0.log", "status.json", "am.json"} {
			if err := store.MkdirAll(t.Context(), home, path.Dir(path.Join(dir, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := store.WriteFile(t.Context(), home, path.Join(dir, name), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		for _, name := range []string{"logs", "status.json", "am.json", ""} {
			if err := home.Chtimes(t.Context(), path.Join(dir, name), at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := func(id string) bool {
		t.Helper()
		_, err := home.Stat(t.Context(), jobs.Directory(id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return err == nil
	}
	const old, young = "application_1500000000000_0001", "application_1500000000000_0002"
	// The queue has room for one application master.
	large := []string{"--worker", "1", "--worker-memory", "256m", "--queue", "small", "--am-memory", "1g", "--", "sleep", "600"}
	w.start(t, "", large...)
	waits := w.start(t, "", large...)
	if s := waits.status(); s.State != proto.JobState_JOB_STATE_WAITING || len(s.Tasks) > 0 {
		t.Fatalf("it does not wait for its application master: %s (%s)", s.State, s.Why)
	}
	age := func(id string) {
		t.Helper()
		at := time.Now().Add(-100 * 24 * time.Hour)
		entries, err := home.List(t.Context(), jobs.Directory(id))
		for _, e := range append(entries, store.Info{}) {
			if err == nil {
				err = home.Chtimes(t.Context(), path.Join(jobs.Directory(id), e.Name), at, at)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	age(waits.id)
	const notBegun = "application_1500000000000_0003"
	must(t, store.MkdirAll(t.Context(), home, jobs.Directory(notBegun), 0o700))
	must(t, store.WriteFile(t.Context(), home, path.Join(jobs.Directory(notBegun), proto.SpecFile), []byte("{}"), 0o600))
	age(notBegun)
	put(old, 100)
	put(young, 80)
	_, errs, code := w.call(t.Context(), "", "run", "--worker", "1", "--worker-memory", "256m", "--", "true")
	if code != 0 || !strings.Contains(errs, "removed the directories of 1 jobs") {
		t.Errorf("run ended with %d:\n%s", code, errs)
	}
	if there(old) || !there(young) {
		t.Errorf("the directory of 100 days ago is there: %v; that of 80 days: %v", there(old), there(young))
	}
	put(old, 100)
	mine := append(w.env(), jobs.EnvHome+"="+t.TempDir()) // where jobs on this machine are
	if out, errs, code := call(t.Context(), mine, "", "gc", "--older-than", "90"); code != 0 || there(old) || !there(young) || !strings.Contains(out, old+": removed") {
		t.Errorf("gc ended with %d, and the directory of 100 days ago is there: %v; that of 80 days: %v\n%s%s", code, there(old), there(young), out, errs)
	}
	for _, id := range []string{waits.id, notBegun} {
		if !there(id) {
			t.Errorf("the directory of %s, which is not known to have ended, is gone", id)
		}
	}
}
