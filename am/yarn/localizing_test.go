package yarn_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"holdfast/am/core/action"
	"holdfast/hdfsckpt/store"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// What a container waits for before anything runs in it is told for as long as it does.
func TestUnpackingIsTold(t *testing.T) {
	c := cluster(t)
	ckptStore, err := store.Open(t.Context(), loadConf(t).DefaultFS()+"/"+strings.ToLower(t.Name()), loadConf(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ckptStore.Close()
	var archive bytes.Buffer
	z := gzip.NewWriter(&archive)
	if err := tar.NewWriter(z).Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(t.Context(), ckptStore, "venv.tar.gz", archive.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := ckptStore.Stat(t.Context(), "venv.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) {
		s.Agents = append(s.Agents, hadoop.LocalResource{
			Name: "venv", URI: ckptStore.URI() + "/venv.tar.gz", Size: info.Size, Timestamp: info.ModTime.UnixMilli(),
			Archive: true, Visibility: hadoop.Private,
		})
	})
	j.ask("worker", 1, 64)
	a := j.allocated(1)[0]
	dn := c.Daemon("dn0")
	if err := dn.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Resume() })
	j.tell(request{Launch: a.Container})
	for range 2 {
		h := j.await("a word of the archive", func(h report) bool { return h.Localizing != nil || h.Ended != nil })
		if h.Localizing == nil || h.Localizing.Container != a.Container || !strings.Contains(h.Localizing.What, "unpacking venv.tar.gz") {
			t.Fatalf("%s", describe(h))
		}
	}
	if err := dn.Resume(); err != nil {
		t.Fatal(err)
	}
	j.pid(a.Container)
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
}
