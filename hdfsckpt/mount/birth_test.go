package mount_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/test/testcluster"

	"golang.org/x/sys/unix"
)

// TestFilesAreOfTheirDirectory: a file has what those get that are made in its
// directory, though it is written elsewhere.
func TestFilesAreOfTheirDirectory(t *testing.T) {
	m, dir := mountLocal(t)
	p := newProcess(t)
	const group = 4242
	shared := filepath.Join(dir, "shared")
	if err := os.Mkdir(shared, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(shared, -1, group); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	p.do(call{Op: "mkdir", Path: m.path("shared/below"), Mode: 0o755})
	for _, name := range []string{"plain", "shared/streamed", "shared/below/streamed"} {
		p.put(m.path(name), "content")
	}
	fd := p.open(m.path("shared/spooled"), forNewRW)
	p.pwrite(fd, 10, "content")
	p.close(fd)
	for name, want := range map[string]uint32{"plain": uint32(os.Getgid()), "shared/streamed": group, "shared/spooled": group, "shared/below/streamed": group} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Sys().(*syscall.Stat_t).Gid; got != want {
			t.Errorf("%s is of group %d, want %d", name, got, want)
		}
	}
	noLeftovers(t, dir)
	// What was made for that goes with the mount, also what changes of directories'
	// lists have made anew.
	mount.StagesLive(t, 0)
	fd = p.open(m.path("shared/longer"), forNew)
	p.put(m.path("shared/short"), "content")
	p.close(fd)
	p.exit(0)
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if writers, err := writers.List(t.Context(), localStore(t, dir)); err != nil || len(writers) > 0 {
		t.Errorf("left are the writers %q, %v", writers, err)
	}
}

// TestWhatIsMadeForADirectoryIsRemoved: a program that makes a directory for each checkpoint, of
// which each passes on something else, leaves no directory in the store for each until it ends.
func TestWhatIsMadeForADirectoryIsRemoved(t *testing.T) {
	m, dir := mountLocal(t)
	mount.StagesLive(t, 0)
	p := newProcess(t)
	made := func() []string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, writers.Dir(""), "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	const group = 4242
	for i := range 5 {
		checkpoint := fmt.Sprintf("checkpoint-%d", i)
		at := filepath.Join(dir, checkpoint)
		err := os.Mkdir(at, 0o755)
		if err == nil {
			err = os.Chown(at, -1, group+i)
		}
		if err == nil {
			err = os.Chmod(at, 0o775|os.ModeSetgid)
		}
		if err != nil {
			t.Fatal(err)
		}
		half := p.open(m.path(checkpoint+"/half"), forNew)
		p.write(half, "half")
		p.put(m.path(checkpoint+"/whole"), "whole")
		if n := len(made()); n < 1 || n > 3 { // for half, for whole, and for the last checkpoint
			t.Errorf("with %s there are %d directories for new files: %q", checkpoint, n, made())
		}
		p.write(half, " and half")
		p.close(half)
		if got := p.get(m.path(checkpoint + "/half")); got != "half and half" {
			t.Errorf("%s/half is %q", checkpoint, got)
		}
	}
}

// hdfsFilesAreOfTheirDirectory: group, access control list and storage policy,
// which counts where a file's blocks are written.
func hdfsFilesAreOfTheirDirectory(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	s := open()
	root := s.URI()[strings.Index(s.URI(), "/user"):]
	hadoop := func(args ...string) string {
		t.Helper()
		out, err := c.Hadoop(t.Context(), args...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	m, p := mountStore(t, s), newProcess(t)
	p.put(m.path("plain"), "content")
	for _, d := range []string{"group", "acl", "cold"} {
		p.do(call{Op: "mkdir", Path: m.path(d), Mode: 0o755})
	}
	hadoop("fs", "-chgrp", "trainers", root+"/group")
	hadoop("fs", "-setfacl", "-m", "default:user:auditor:r--", root+"/acl")
	hadoop("org.apache.hadoop.hdfs.tools.StoragePolicyAdmin", "-setStoragePolicy", "-path", root+"/cold", "-policy", "COLD")
	p.put(m.path("group/file"), "content")
	if out := hadoop("fs", "-stat", "%g", root+"/group/file"); strings.TrimSpace(lastLine(out)) != "trainers" {
		t.Errorf("a file in a directory of the group trainers is of %q", out)
	}
	p.put(m.path("acl/file"), "content")
	if out := hadoop("fs", "-getfacl", root+"/acl/file"); !strings.Contains(out, "user:auditor:r--") {
		t.Errorf("a file has not got its directory's default access control list:\n%s", out)
	}
	fd := p.open(m.path("cold/file"), unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	want, err := s.Stat(t.Context(), "cold")
	if err != nil {
		t.Fatal(err)
	}
	var births []string
	all, err := writers.List(t.Context(), s)
	if err != nil || len(all) != 1 {
		t.Fatalf("writers: %q, %v", all, err)
	}
	stages, err := s.List(t.Context(), writers.Dir(all[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range stages {
		births = append(births, i.Birth)
	}
	if !slices.Contains(births, want.Birth) {
		t.Errorf("a file for a directory of the storage policy COLD, %q, is written to one of %q", want.Birth, births)
	}
	p.close(fd)
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}
