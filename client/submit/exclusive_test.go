package submit

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// TestADirectoryBelongsToTheJobThatWaits: from its submission on, before its application master
// runs.
func TestADirectoryBelongsToTheJobThatWaits(t *testing.T) {
	dir := t.TempDir()
	s, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own := &proto.CheckpointSpec{Path: "./logs", Uri: dir}
	shared := &proto.CheckpointSpec{Path: "./logs", Uri: dir, Share: true}
	claims := func(job string, c *proto.CheckpointSpec) (*claims, error) {
		return claimAll(t.Context(), &proto.JobSpec{Checkpoints: []*proto.CheckpointSpec{c}}, job, func(string) bool { return true }, openLocal)
	}
	recorded := func(want ...string) {
		t.Helper()
		if got, err := writers.List(t.Context(), s); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("recorded are %q, %v, want %q", got, err, want)
		}
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "job-1") || !strings.Contains(err.Error(), "share=true") {
			t.Errorf("another job is told: %v", err)
		}
	}
	first, err := claims("job-1", own)
	if err != nil {
		t.Fatal(err)
	}
	recorded("job-1.submission")
	_, err = claims("job-2", own)
	refused(err)
	recorded("job-1.submission")
	if _, err := claims("job-3", shared); err != nil {
		t.Errorf("a job that shares it: %v", err)
	}
	recorded("job-1.submission")

	check := func(f jobs.Liveness) error {
		return checkExclusive(t.Context(), s, own, openLocal, func(context.Context, string) jobs.Liveness { return f }, func(note string) { t.Errorf("it waits: %s", note) })
	}
	refused(check(jobs.Alive))
	first.remove(t.Context())
	recorded()
	if err := check(jobs.Alive); err != nil {
		t.Error(err)
	}
	if _, err := claims("job-1", own); err != nil {
		t.Fatal(err)
	}
	if err := check(jobs.Ended); err != nil {
		t.Errorf("after a job that has ended: %v", err)
	}
	recorded()
}
