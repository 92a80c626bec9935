// Package files measures files on HDFS beside FsShell and the Go client
// colinmarc/hdfs. They are written and read by processes of which each is measured
// from outside, from its start to its end (command ours, command peer, FsShell).
package files

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/test/bench"
	"holdfast/test/testcluster"
)

// Files measures files.
type Files struct{ *bench.Bench }

// with is the same on another cluster.
func (b *Files) with(c *testcluster.Cluster) *Files {
	return &Files{&bench.Bench{Options: b.Options, Cluster: c, Dir: b.Dir}}
}

// program runs one that was built.
func (b *Files) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.Dir, name), args...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+b.Cluster.ConfDir())
	return cmd
}

// mounted runs a bash script in a directory of HDFS, mounted as in a container:
// in a user and mount namespace of its own.
func (b *Files) mounted(ctx context.Context, replication int, uri, script string, args ...string) *exec.Cmd {
	cmd := b.program(ctx, "ours", append([]string{"-replication", strconv.Itoa(replication), "mounted", uri, script}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	return cmd
}

// shell runs Hadoop's FsShell, with the JVM's best compiler, which the test
// cluster's clients do without to start faster.
func (b *Files) shell(ctx context.Context, args ...string) *exec.Cmd {
	cmd := b.Cluster.HadoopCommand(ctx, append([]string{"fs"}, args...)...)
	cmd.Args = slices.Insert(cmd.Args, slices.Index(cmd.Args, "-cp"), "-XX:TieredStopAtLevel=4")
	return cmd
}

// jvm measures what n JVMs take that do next to nothing.
func (b *Files) jvm(ctx context.Context, n int) (bench.Usage, error) {
	var all []*exec.Cmd
	for range n {
		all = append(all, b.shell(ctx, "-ls", "/"))
	}
	return bench.Measure(all...)
}
