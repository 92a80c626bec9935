package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"holdfast/internal/proc"
)

// guards has the kernel kill the process groups of the box when this process ends, before
// anybody can wait for it. A NodeManager waits for the agent and then removes the container's
// directories, and with them the mounts in the box (rmdir(2) of a mount point of another
// namespace detaches what is mounted there: Linux, fs/namei.c, vfs_rmdir). The init process
// finds what it must kill in /proc, which takes a while; a task that lives on meanwhile would
// save to directories of the node.
//
// The writing end of a pipe is this process's alone. The init process holds, for each group, a
// reading end that sends SIGKILL to that group (fcntl(2), F_SETOWN, F_SETSIG, O_ASYNC) when the
// pipe changes, which it does as its last writer is closed (fs/pipe.c, pipe_release).
type guards struct {
	reader, writer *os.File

	mu     sync.Mutex
	groups map[int]members // by process group, as last seen
}

func newGuards() (*guards, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making the pipe whose end kills the task's processes: %w", err)
	}
	return &guards{
		reader: os.NewFile(uintptr(ends[0]), "guards"), writer: os.NewFile(uintptr(ends[1]), "guards"),
		groups: map[int]members{},
	}, nil
}

// close ends the guards; the groups that are still guarded are killed.
func (g *guards) close() {
	g.writer.Close()
	g.reader.Close()
}

// open returns a reading end that kills a process group, of which members are known. It fails
// with ESRCH when none of them is in it any more: the number may be that of another group.
func (g *guards) open(group int, members members) (*os.File, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", g.reader.Fd()), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a pipe again: %w", err)
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETOWN, -group)
	if err == nil && !continues(members, look(slices.Collect(maps.Keys(members)))[group]) {
		err = unix.ESRCH
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETSIG, int(unix.SIGKILL))
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK|unix.O_ASYNC)
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "guard"), nil
}

// members are processes of one group, and when each began (proc.Stat.Started).
type members map[int]uint64

// look returns the groups of those processes that live.
func look(processes []int) map[int]members {
	groups := map[int]members{}
	for _, pid := range processes {
		s, err := proc.ReadStat(pid)
		if err != nil || s.Ended() {
			continue
		}
		if groups[s.Group] == nil {
			groups[s.Group] = members{}
		}
		groups[s.Group][pid] = s.Started
	}
	return groups
}

// continues reports whether a member of a group is still one.
func continues(before, now members) bool {
	for pid, began := range now {
		if was, ok := before[pid]; ok && was == began {
			return true
		}
	}
	return false
}

// Guard has the kernel kill the process groups of processes, which are in the box, when this
// process ends. Those of Exec and Adopt are guarded already; programs may make others. It waits
// neither for the init process nor for a mount.
func (b *Box) Guard(processes []int) error {
	g := b.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	now := look(processes)
	delete(now, b.Pid()) // of a child that has not left it yet
	var failed error
	for group, there := range now {
		if !continues(g.groups[group], there) {
			file, err := g.open(group, there)
			if errors.Is(err, unix.ESRCH) {
				continue // it has ended
			}
			if err == nil {
				err = b.send(message{Op: opGuard, Pid: group}, int(file.Fd()))
				file.Close()
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("having the process group %d killed at this process's end: %w", group, err))
				continue
			}
		}
		g.groups[group] = there
	}
	for group := range g.groups {
		if now[group] == nil && unix.Kill(-group, 0) == unix.ESRCH {
			delete(g.groups, group)
			_ = b.send(message{Op: opUnguard, Pid: group}) // or the box has ended
		}
	}
	return failed
}
