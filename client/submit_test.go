package client

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/proto"
)

// TestTheBinaryIsTheSame: whoever brings it, and when. Of two who submit for the first
// time at once, both do, and NodeManagers hold each to what it has told of it.
func TestTheBinaryIsTheSame(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "exe")
	home, err := hdfsckpt.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer home.Close()
	ctx := context.Background()
	if err := os.WriteFile(exe, []byte("program"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, err := provideBinary(ctx, home, exe, "sum")
	if err != nil {
		t.Fatal(err)
	}
	if err := home.Remove(ctx, "bin/sum/"+binaryName); err != nil { // the other one had not seen it
		t.Fatal(err)
	}
	second, err := provideBinary(ctx, home, exe, "sum")
	if err != nil || first != second {
		t.Errorf("first %+v, then %+v, %v", first, second, err)
	}
	before, err := home.Stat(ctx, "bin/sum/"+binaryName)
	if err != nil {
		t.Fatal(err)
	}
	if err := bringBinary(ctx, home, "bin/sum/"+binaryName, exe, before.Size); err != nil {
		t.Error(err)
	}
	if after, err := home.Stat(ctx, "bin/sum/"+binaryName); err != nil || after != before {
		t.Errorf("the other's was %+v, now %+v, %v; a NodeManager may be reading it", before, after, err)
	}
	if left, err := home.List(ctx, "bin/sum"); err != nil || len(left) != 1 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestMasterKeepsWithinItsContainer: the limit follows the container's memory.
func TestMasterKeepsWithinItsContainer(t *testing.T) {
	for _, c := range []struct {
		tasks int32
		want  string
	}{{1, "230MiB"}, {13000, "1130MiB"}} {
		spec := &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Count: c.tasks}}}
		if got := heapOf(resourceOfMaster(spec)); got != c.want {
			t.Errorf("with %d tasks the limit is %s, want %s", c.tasks, got, c.want)
		}
	}
}
