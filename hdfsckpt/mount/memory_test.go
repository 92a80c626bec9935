package mount_test

import (
	"fmt"
	"runtime/debug"
	"sync"
	"testing"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/proc"
	"holdfast/test/testcluster"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// What package mount promises: the bytes that an agent holds for a mount,
// whatever is written and read through it.
const memoryBound = 300 << 20

// TestMemory writes and reads many large files at once: streamed, spooled and
// read back.
func TestMemory(t *testing.T) {
	b, store := localBox(t)
	writeMuch(t, b, "writemuch", 48, 16<<20)
	noLeftovers(t, store)
}

func hdfsMemory(t *testing.T, c *testcluster.Cluster, open func() store.Store) {
	b := hdfsBox(t, c, open)
	writeMuch(t, b, "holdmuch", 200, 700_000)
	writeMuch(t, b, "writemuch", 48, 8<<20)
}

func writeMuch(t *testing.T, b *box, op string, files int, size int64) {
	before := b.agent.peakMemory()
	b.task.do(call{Op: op, Path: b.dir, Fd: files, Size: size})
	peak := b.agent.peakMemory()
	t.Logf("%s, %d files of %d KB: the agent's memory rose from %d to %d MB at most", op, files, size>>10, before>>20, peak>>20)
	if peak > memoryBound {
		t.Errorf("the agent took %d MB, and the bound is %d", peak>>20, memoryBound>>20)
	}
}

// holdOpen writes files that are all open at the same time, large ones and as
// many small ones, and closes them.
func holdOpen(dir string, files int, size int64) error {
	fds := make([]int, 2*files)
	content := func(i int) int64 { return max(10, size*int64(1-i%2)) }
	name := func(i int) string { return fmt.Sprintf("%s/open-%d", dir, i) }
	for i := range fds {
		var err error
		if fds[i], err = unix.Open(name(i), forNew|unix.O_CLOEXEC, 0o644); err != nil {
			return err
		}
	}
	each := func(do func(i int) error) error {
		var all errgroup.Group
		for i := range fds {
			all.Go(func() error { return do(i) })
		}
		return all.Wait()
	}
	err := each(func(i int) error {
		const piece = 70_001
		for left := content(i); left > 0; left -= piece {
			if _, err := unix.Write(fds[i], make([]byte, min(left, piece))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return each(func(i int) error {
		if err := unix.Close(fds[i]); err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Stat(name(i), &st); err != nil {
			return err
		}
		if st.Size != content(i) {
			return fmt.Errorf("%s has %d bytes of %d", name(i), st.Size, content(i))
		}
		return unix.Unlink(name(i))
	})
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
	more["holdmuch"] = func(c call, _ *answer) error { return holdOpen(c.Path, c.Fd, c.Size) }
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

// peakMemory is the most memory that a process has ever held, in bytes.
func (p *process) peakMemory() int64 {
	p.t.Helper()
	status, err := proc.ReadStatus(p.cmd.Process.Pid)
	most := status.Bytes("VmHWM")
	if err != nil || most == 0 {
		p.t.Fatalf("the memory of process %d is not known: %v", p.cmd.Process.Pid, err)
	}
	return most
}
