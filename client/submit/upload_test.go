package submit

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// TestTheBinaryIsTheSame: whoever brings it, and when. Of two who submit for the first
// time at once, both do, and NodeManagers hold each to what it has told of it.
func TestTheBinaryIsTheSame(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "exe")
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	ctx := context.Background()
	if err := os.WriteFile(exe, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := uploadBinary(ctx, home, exe, "sum")
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Remove(ctx, "bin/sum/"+binaryName); err != nil { // the other one had not seen it
		t.Fatal(err)
	}
	second, err := uploadBinary(ctx, home, exe, "sum")
	if err != nil || first != second {
		t.Errorf("first %+v, then %+v, %v", first, second, err)
	}
	before, err := home.Stat(ctx, "bin/sum/"+binaryName)
	if err != nil {
		t.Fatal(err)
	}
	if err := uploadShared(ctx, home, "bin/sum/"+binaryName, exe, before.Size, 0o700); err != nil {
		t.Error(err)
	}
	if after, err := home.Stat(ctx, "bin/sum/"+binaryName); err != nil || after != before {
		t.Errorf("the other's was %+v, now %+v, %v; a NodeManager may be reading it", before, after, err)
	}
	if left, err := home.List(ctx, "bin/sum"); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// Nodes keep what they have unpacked by its address and time: those of an archive that
// another job brings again are the same.
func TestArchivesAreSharedByJobs(t *testing.T) {
	dir := t.TempDir()
	archive := filepath.Join(dir, "venv.tar.gz")
	if err := os.WriteFile(archive, []byte("archive"), 0o644); err != nil {
		t.Fatal(err)
	}
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	set, err := jobtls.New("j")
	if err != nil {
		t.Fatal(err)
	}
	venv := func(digest string) *proto.FileSpec {
		return &proto.FileSpec{Name: "venv", Uri: archive, Size: 7, Mode: 0o644, Archive: true, Sha256: digest}
	}
	var first yarn.LocalResource
	for _, id := range []string{"one", "two"} {
		got, err := upload(t.Context(), home, jobs.Directory(id), &proto.JobSpec{Files: []*proto.FileSpec{venv("1")}}, set)
		if err != nil || len(got) != 1 || got[0].Visibility != yarn.Private || !got[0].Archive || got[0].Name != "venv" {
			t.Fatalf("%+v, %v", got, err)
		}
		if id == "one" {
			first = got[0]
		} else if got[0] != first {
			t.Errorf("first %+v, then %+v", first, got[0])
		}
	}
	if err := os.WriteFile(archive, []byte("another"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r, err := uploadArchive(t.Context(), home, venv("2")); err != nil || r.URI == first.URI {
		t.Errorf("another archive of the same name and size: %+v, %v", r, err)
	}
}
