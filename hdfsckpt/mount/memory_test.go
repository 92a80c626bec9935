package mount_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/internal/testcluster"

	"golang.org/x/sys/unix"
)

// What package mount promises: the bytes that an agent holds for a mount,
// whatever is written and read through it.
const (
	memoryBound  = 200 << 20
	memoryOfFile = 12 << 20 // in addition for each file that is being written to HDFS
)

// TestMemory writes and reads many large files at once: streamed, spooled and
// read back.
func TestMemory(t *testing.T) {
	b, store := localBox(t)
	writeMuch(t, b, 48, 16<<20, memoryBound)
	noLeftovers(t, store)
}

func hdfsMemory(t *testing.T, c *testcluster.Cluster, open func() hdfsckpt.Store) {
	b := hdfsBox(t, c, open)
	for _, files := range []int{2, 48} {
		writeMuch(t, b, files, 8<<20, memoryBound+int64(files)*memoryOfFile)
	}
}

func writeMuch(t *testing.T, b *box, files int, size, bound int64) {
	before := b.agent.peakMemory()
	b.task.do(call{Op: "writemuch", Path: b.dir, Fd: files, Size: size})
	peak := b.agent.peakMemory()
	t.Logf("%d files of %d MB at once: the agent's memory rose from %d to %d MB at most", files, size>>20, before>>20, peak>>20)
	if peak > bound {
		t.Errorf("the agent took %d MB, and the bound is %d", peak>>20, bound>>20)
	}
}

// writeAndCheck writes a file in one of several ways, and reads it back.
func writeAndCheck(dir string, i int, size int64) error {
	name := fmt.Sprintf("%s/many-%d", dir, i)
	fd, err := unix.Open(name, forNewRW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return err
	}
	c := call{Fd: fd, Size: size, Fill: byte(i)}
	if _, err := writeAll(c, func(b []byte, _ int64) (int, error) { return unix.Write(fd, b) }); err != nil {
		return err
	}
	if i%3 == 0 { // to the spool
		if _, err := unix.Pwrite(fd, []byte{byte(i)}, 0); err != nil {
			return err
		}
	}
	if err := unix.Close(fd); err != nil {
		return err
	}
	if fd, err = unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 1<<20)
	var n int64
	for {
		k, err := unix.Read(fd, buf)
		if err != nil {
			return err
		}
		if k == 0 {
			break
		}
		n += int64(k)
	}
	if n != size {
		return fmt.Errorf("%s reads %d bytes of %d", name, n, size)
	}
	return unix.Unlink(name)
}

func init() {
	more["writemuch"] = func(c call, _ *answer) error {
		errs := make([]error, c.Fd)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = writeAndCheck(c.Path, i, c.Size) })
		}
		wg.Wait()
		debug.FreeOSMemory()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// peakMemory is the most that a process has ever held, in bytes (VmHWM,
// proc_pid_status(5)).
func (p *process) peakMemory() int64 {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			return kb << 10
		}
	}
	p.t.Fatal("no VmHWM in /proc")
	return 0
}
