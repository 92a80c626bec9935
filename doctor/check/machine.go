package check

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/sys/unix"

	"holdfast/container/gpu"
	"holdfast/internal/proc"
	"holdfast/runtime/frameworks"
)

// System reports kernel and machine.
func System() Finding {
	system := runtime.GOOS + "/" + runtime.GOARCH
	var u unix.Utsname
	if err := unix.Uname(&u); err == nil {
		system = "Linux " + unix.ByteSliceToString(u.Release[:]) + ", " + runtime.GOARCH
	}
	return good("system", "%s, %d cores", system, runtime.NumCPU())
}

// User reports as which user containers run for the one who submitted.
func User(submitter string, secure bool) Finding {
	const subject = "user"
	name, err := proc.UserName()
	if err != nil {
		name = fmt.Sprintf("the user %d, who has no name there", os.Getuid())
	}
	switch {
	case name == submitter:
		return good(subject, "containers run as %s, the submitting user", name)
	case secure:
		return note(subject, "containers run as %s, the NodeManager's user, so that everybody's containers can read each other's files and tokens: set yarn.nodemanager.container-executor.class to LinuxContainerExecutor", name)
	}
	return good(subject, "containers run as %s, and act on HDFS as %s", name, submitter)
}

// enough is how much disk a container's directory ought to have left, for
// inputs and for spooled checkpoints.
const enough = 1 << 30

// Directory looks at a directory in which programs are to be run and files are
// kept.
func Directory(subject, dir string) Finding {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return bad(subject, "%s: %v", dir, err)
	}
	free := s.Bavail * uint64(s.Bsize)
	switch {
	case s.Flags&unix.ST_NOEXEC != 0:
		return bad(subject, "%s is mounted noexec, so no program can be run from there (a virtual environment, say): mount it without that option, or name another directory in yarn.nodemanager.local-dirs", dir)
	case unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		return bad(subject, "%s cannot be written by the user who runs containers: see its owner and mode (%s)", dir, mode(dir))
	case free < enough:
		return note(subject, "%s has %s left", dir, humanize.IBytes(free))
	}
	return good(subject, "%s (%s) has %s left", dir, mode(dir), humanize.IBytes(free))
}

func mode(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%04o", info.Mode().Perm())
}

// Closed reports whether other users of the machine are kept out of a container's
// directory. YARN closes the application's, two levels up, to all but the
// NodeManager's group (ContainerLocalizer.APPDIR_PERM, 0710).
func Closed(container string) Finding {
	const subject = "directories of others"
	for dir := container; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return note(subject, "%v", err)
		}
		if info.Mode().Perm()&0o001 == 0 {
			return good(subject, "%s is closed to other users (%04o)", dir, info.Mode().Perm())
		}
	}
	return note(subject, "every user of this machine can go into %s: close yarn.nodemanager.local-dirs to others", container)
}

// SELinux reports whether it is in force.
func SELinux() Finding {
	const subject = "SELinux"
	b, err := os.ReadFile("/sys/fs/selinux/enforce")
	switch {
	case err != nil:
		return good(subject, "not on")
	case strings.TrimSpace(string(b)) != "1":
		return good(subject, "permissive")
	}
	return note(subject, "enforcing, as %s: if mounts or steering are refused here, ausearch -m avc tells which rule did", proc.SecurityLabel())
}

// Filtered reports whether a seccomp filter is on this process already, as in
// Docker's containers.
func Filtered() Finding {
	const subject = "seccomp"
	status, _ := proc.ReadStatus(os.Getpid())
	if status.Text("Seccomp") != "2" {
		return good(subject, "no filter is in force")
	}
	return note(subject, "a filter is in force already (Docker?): it may forbid mounts and steering; if it does, run with --security-opt seccomp=unconfined")
}

// Limits that frameworks run into.
const (
	fewFiles     = 4096
	fewProcesses = 4096
)

// Rlimits looks at the limits that programs get which this process starts: the soft ones, which
// are those in force.
func Rlimits() Finding {
	const subject = "limits"
	limit, done, err := givenLimits()
	if err != nil {
		return note(subject, "they cannot be found out: %v", err)
	}
	defer done()
	var said, low []string
	for _, l := range []struct {
		name     string
		resource int
		few      uint64
	}{{"open files (nofile)", unix.RLIMIT_NOFILE, fewFiles}, {"processes and threads (nproc)", unix.RLIMIT_NPROC, fewProcesses}, {"address space (as)", unix.RLIMIT_AS, 1 << 40}} {
		r, err := limit(l.resource)
		if err != nil {
			return bad(subject, "%s: %v", l.name, err)
		}
		what := l.name + " " + limitText(r.Cur)
		if r.Cur < l.few && r.Cur < r.Max {
			what += ", which a program may raise to " + limitText(r.Max)
		}
		said = append(said, what)
		if r.Cur < l.few {
			low = append(low, what)
		}
	}
	if len(low) > 0 {
		return note(subject, "%s: little for a framework with many threads and connections; raise it for the NodeManager (limits.conf, or Limit… in its systemd unit)", strings.Join(low, "; "))
	}
	return good(subject, "%s", strings.Join(said, ", "))
}

func limitText(n uint64) string {
	if n == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

// givenLimits has a program started and returns its limits. Those of this process are others: Go
// raises its soft limit of open files, and gives programs that it starts the former one.
func givenLimits() (limit func(resource int) (unix.Rlimit, error), done func(), err error) {
	cmd := exec.Command("cat") // waits for the end of its input
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	limit = func(resource int) (r unix.Rlimit, err error) {
		err = unix.Prlimit(cmd.Process.Pid, resource, nil, &r)
		return r, err
	}
	return limit, func() { in.Close(); _ = cmd.Wait() }, nil
}

// Memory reports whether a cgroup limits the memory of this process. allotted is
// what YARN gave, in MB; 0: this is no container.
func Memory(allotted int64) Finding {
	const subject = "memory"
	groups, _ := proc.Cgroups()
	limit, version := cgroupLimit("/sys/fs/cgroup", groups)
	switch {
	case version == 0:
		return good(subject, "no cgroups")
	case limit == 0 && allotted > 0:
		return good(subject, "cgroups v%d set no limit for containers: the NodeManager kills those that use more than they asked for, if it checks (yarn.nodemanager.pmem-check-enabled)", version)
	case limit == 0:
		return good(subject, "cgroups v%d set no limit", version)
	}
	return good(subject, "limited to %s by cgroups v%d", humanize.IBytes(limit), version)
}

// GPUs says whether YARN keeps GPUs from containers that did not ask for them, as this one.
func GPUs(n gpu.Node) Finding {
	const subject = "GPUs"
	installed, open := n.Installed(), len(n.Devices())
	switch {
	case installed == 0:
		return good(subject, "none of NVIDIA's is seen here")
	case open == 0:
		return good(subject, "%d, and this container, which asked for none, can open none: YARN isolates them", installed)
	}
	return note(subject, "%d, and this container, which asked for none, can open %d: YARN does not isolate them. Tasks of jobs here are told which to use (CUDA_VISIBLE_DEVICES), and no two that ask for GPUs share one, but nothing keeps other programs of the node off them. Have YARN isolate them (yarn.nodemanager.resource-plugins, with device cgroups or Docker)", installed, open)
}

// cgroupLimit returns the smallest limit on the way to the root; 0: none.
func cgroupLimit(root string, groups []proc.Cgroup) (limit uint64, version int) {
	smaller := func(file string) {
		text, err := os.ReadFile(file)
		if err != nil {
			return
		}
		// v1 says "none" by a number near the largest.
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && n < 1<<60 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	for _, g := range groups {
		dir, file := root, "memory.max"
		switch {
		case len(g.Controllers) == 0:
			version = cmp.Or(version, 2) // beside v1's memory controller, it has none
		case slices.Equal(g.Controllers, []string{"memory"}):
			dir, file, version = filepath.Join(root, "memory"), "memory.limit_in_bytes", 1
		default:
			continue
		}
		for path := g.Path; ; path = filepath.Dir(path) {
			smaller(filepath.Join(dir, path, file))
			if path == "/" || path == "." {
				break
			}
		}
	}
	return limit, version
}

// versions asks for versions without importing, which takes seconds. Its arguments
// are the names of distributions. It writes a line with Python's version, and one with
// those that are there.
const versions = `import importlib.metadata as m, platform, sys
found = []
for name in sys.argv[1:]:
    try: found.append(name + " " + m.version(name))
    except m.PackageNotFoundError: pass
print(platform.python_version(), ", ".join(found), sep="\n")`

// Python reports which interpreter commands find here, with which frameworks.
func Python(ctx context.Context) Finding {
	const subject = "Python"
	path, err := exec.LookPath("python3")
	if err != nil {
		return note(subject, "there is no python3 on the PATH of containers: bring one along with --archives venv.tar.gz#venv")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	modules, titles := []string{"-c", versions}, []string{}
	for _, f := range frameworks.All {
		modules = append(modules, f.Modules...)
		if f.Title != "" {
			titles = append(titles, f.Title)
		}
	}
	out, err := exec.CommandContext(ctx, path, modules...).Output()
	if err != nil {
		return note(subject, "%s does not start: %v", path, err)
	}
	version, found, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if found == "" {
		last := len(titles) - 1
		return good(subject, "%s %s without %s or %s", path, version, strings.Join(titles[:last], ", "), titles[last])
	}
	return good(subject, "%s %s with %s", path, version, found)
}
