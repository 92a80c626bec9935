package processes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/test/ports"
)

const (
	// watchdogEnv makes this executable a watchdog; its value is the directory.
	watchdogEnv = "HOLDFAST_TESTCLUSTER_WATCHDOG"
	// keepEnv, not empty, keeps the directory, to look at its logs.
	keepEnv = "HOLDFAST_TESTCLUSTER_KEEP"
	// JVMMark, followed by the directory, is on each JVM's command line.
	// Containers inherit NodeManagers' environments, so it does not stand there.
	JVMMark = "-Dholdfast.cluster="
	// MarkEnv does the same for a daemon that is not a JVM.
	MarkEnv = "HOLDFAST_TESTCLUSTER"
)

// An executable that has this package in it can be its own watchdog, whatever
// its main function is: that is how test binaries can have one.
func init() {
	if dir := os.Getenv(watchdogEnv); dir != "" {
		os.Exit(keep(dir))
	}
}

// keep is the watchdog's life: it waits for the end of its standard input, which
// only the cluster's process holds open, and clears up. What it could not
// clear up it prints.
func keep(dir string) int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := end(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// end ends what belongs to the cluster and removes its directory.
func end(dir string) error {
	err := clear(dir)
	if err == nil && os.Getenv(keepEnv) == "" {
		err = remove(dir)
	}
	return err
}

// clear ends everything that belongs to the cluster. It looks again until it
// finds nothing twice, because processes fork.
func clear(dir string) error {
	deadline := time.Now().Add(60 * time.Second)
	for quiet := 0; quiet < 2; {
		found, err := belonging(dir)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			quiet++
		} else {
			quiet = 0
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of the cluster in %s do not end", found, dir)
		}
		for _, pid := range found {
			if err := Kill(pid); err != nil {
				return fmt.Errorf("ending the cluster in %s: %w", dir, err)
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// remove removes the directory, but nothing that is mounted below it.
func remove(dir string) error {
	mounts, err := mountsBelow(dir)
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if err := unix.Unmount(m, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s, which a container left: %w", m, err)
		}
	}
	return os.RemoveAll(dir)
}

func mountsBelow(dir string) ([]string, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	for s := bufio.NewScanner(f); s.Scan(); {
		// proc(5): the fifth field is the mount point, blanks in it as \040.
		if fields := strings.Fields(s.Text()); len(fields) > 4 && strings.HasPrefix(fields[4], dir+"/") {
			found = append([]string{strings.ReplaceAll(fields[4], `\040`, " ")}, found...) // the innermost first
		}
	}
	return found, nil
}

// Watchdog is the cluster's end of its watchdog.
type Watchdog struct {
	dir    string // the cluster's
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	output strings.Builder
	once   sync.Once
	err    error
}

// StartWatchdog starts a watchdog for the cluster in a directory, with its ports.
func StartWatchdog(dir string, ports *ports.Block) (*Watchdog, error) {
	hold, err := ports.Hold.File()
	if err != nil {
		return nil, fmt.Errorf("starting the cluster's watchdog: %w", err)
	}
	defer hold.Close()
	k := &Watchdog{dir: dir, cmd: exec.Command("/proc/self/exe")}
	k.cmd.Args = []string{filepath.Base(os.Args[0]), "testcluster-watchdog"}
	k.cmd.Env = append(os.Environ(), watchdogEnv+"="+dir)
	k.cmd.Dir = "/"
	k.cmd.Stdout = &k.output
	k.cmd.ExtraFiles = []*os.File{hold} // the ports stay claimed until it is done
	// Ctrl-C in a terminal goes to the foreground group; the watchdog outlives it.
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if k.stdin, err = k.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting the cluster's watchdog: %w", err)
	}
	if err := k.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the cluster's watchdog: %w", err)
	}
	return k, nil
}

// Pid is the watchdog's process, and the process group for the cluster's daemons.
func (k *Watchdog) Pid() int { return k.cmd.Process.Pid }

// Stop has the watchdog end the cluster, and returns when it has; for one that was killed,
// which is an error, this process does it. Later calls return the same.
func (k *Watchdog) Stop() error {
	k.once.Do(func() {
		k.stdin.Close()
		err := k.cmd.Wait()
		if err == nil {
			return
		}
		k.err = fmt.Errorf("stopping the cluster: %w: %s", err, strings.TrimSpace(k.output.String()))
		if !k.cmd.ProcessState.Exited() {
			k.err = errors.Join(k.err, end(k.dir))
		}
	})
	return k.err
}
