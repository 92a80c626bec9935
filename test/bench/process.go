package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what processes took, in seconds: from their start to the end of the
// last, and of processors, with their children.
type usage struct{ wall, cpu float64 }

// usages are what one contestant took, run by run.
type usages []usage

func (u usages) wall() series {
	var s series
	for _, x := range u {
		s = append(s, x.wall)
	}
	return s
}

func (u usages) cpu() series {
	var s series
	for _, x := range u {
		s = append(s, x.cpu)
	}
	return s
}

// measure runs processes at the same time.
func measure(all ...*exec.Cmd) (usage, error) {
	outputs := make([]bytes.Buffer, len(all))
	errs := make([]error, len(all))
	began := time.Now()
	for i, cmd := range all {
		if cmd.Stdout == nil {
			cmd.Stdout = &outputs[i]
		}
		cmd.Stderr = &outputs[i]
		errs[i] = cmd.Start()
	}
	var u usage
	for i, cmd := range all {
		if errs[i] == nil {
			errs[i] = cmd.Wait()
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w\n%s", commandLine(cmd), errs[i], bytes.TrimSpace(outputs[i].Bytes()))
			continue
		}
		u.cpu += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	u.wall = time.Since(began).Seconds()
	return u, errors.Join(errs...)
}

// commandLine is what was run, without Java's class path, which is long.
func commandLine(cmd *exec.Cmd) string {
	args := slices.Clone(cmd.Args)
	if i := slices.Index(args, "-cp"); i >= 0 && i+1 < len(args) {
		args = slices.Delete(args, i, i+2)
	}
	return strings.Join(args, " ")
}

// build makes the programs that are compared: the commands ours and bare, and
// peer, which is a module of its own.
func (b *bench) build(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module to build what is compared: %w", err)
	}
	for _, name := range []string{"bench/ours", "bench/bare", "bench/peer", "scale"} {
		dir := filepath.Join(strings.TrimSpace(string(out)), "test", name)
		cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", filepath.Join(b.dir, filepath.Base(name)), ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// program runs one that was built.
func (b *bench) program(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(b.dir, name), args...)
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+b.cluster.ConfDir())
	return cmd
}

// mounted runs a bash script in a directory of HDFS, mounted as in a container:
// in a user and mount namespace of its own.
func (b *bench) mounted(ctx context.Context, replication int, uri, script string, args ...string) *exec.Cmd {
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
func (b *bench) shell(ctx context.Context, args ...string) *exec.Cmd {
	cmd := b.cluster.HadoopCommand(ctx, append([]string{"fs"}, args...)...)
	cmd.Args = slices.Insert(cmd.Args, slices.Index(cmd.Args, "-cp"), "-XX:TieredStopAtLevel=4")
	return cmd
}

// jvm measures what n JVMs take that do next to nothing.
func (b *bench) jvm(ctx context.Context, n int) (usage, error) {
	var all []*exec.Cmd
	for range n {
		all = append(all, b.shell(ctx, "-ls", "/"))
	}
	return measure(all...)
}
