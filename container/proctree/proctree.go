// Package proctree looks at processes through /proc: who descends from whom,
// what memory they hold, and ends whole trees of them. It starts no goroutine.
package proctree

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stat is what we need of /proc/PID/stat, proc(5).
type stat struct {
	state  byte
	parent int
}

// parseStat reads a line of /proc/PID/stat. The command, in parentheses, may
// hold anything, parentheses and newlines too: the last one ends it.
func parseStat(b []byte) (stat, bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return stat{}, false
	}
	f := bytes.Fields(b[i+1:])
	if len(f) < 2 || len(f[0]) != 1 {
		return stat{}, false
	}
	parent, err := strconv.Atoi(string(f[1]))
	if err != nil || parent < 0 {
		return stat{}, false
	}
	return stat{state: f[0][0], parent: parent}, true
}

// Descendants are the living processes below root, parents before children.
// root itself and zombies are not among them; children of zombies are. spared
// processes are left out, with all below them.
func Descendants(root int, spared ...int) []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	children := map[int][]int{}
	zombie := map[int]bool{}
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + n + "/stat")
		if err != nil {
			continue // it has gone
		}
		s, ok := parseStat(b)
		if !ok {
			continue
		}
		children[s.parent] = append(children[s.parent], pid)
		zombie[pid] = s.state == 'Z' || s.state == 'X'
	}
	var found []int
	seen := map[int]bool{root: true}
	for _, p := range spared {
		seen[p] = true
	}
	queue := []int{root}
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, c := range children[p] {
			if seen[c] {
				continue
			}
			seen[c] = true
			queue = append(queue, c)
			if !zombie[c] {
				found = append(found, c)
			}
		}
	}
	return found
}

// Parent is the parent of a process; ok is false if there is no such process.
func Parent(pid int) (parent int, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	s, ok := parseStat(b)
	return s.parent, ok
}

// KillDescendants sends SIGKILL to all below root until none is left or ctx
// ends. Processes that fork while they are killed are found the next time;
// root must be a subreaper, or what is orphaned gets away. spared processes
// live on, with all below them.
func KillDescendants(ctx context.Context, root int, spared ...int) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left := Descendants(root, spared...)
		if len(left) == 0 {
			return nil
		}
		for _, p := range left {
			_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended just now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("ending the processes below %d: %d are left, %d first: %w", root, len(left), left[0], ctx.Err())
		case <-time.After(wait):
		}
	}
}

// Doom sends SIGKILL to all below root, and returns when there is none that has
// not got it: none does anything any more, whatever it may wait for. It tells how
// many there were. root must be a subreaper.
func Doom(root int) int {
	doomed := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range Descendants(root) {
			if !doomed[p] {
				doomed[p], more = true, true
				_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended just now
			}
		}
	}
	return len(doomed)
}

// RSS is the resident memory of processes, in bytes. Pages that they share are
// counted for each.
func RSS(pids ...int) int64 {
	var sum int64
	for _, p := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p))
		if err != nil {
			continue
		}
		if f := strings.Fields(string(b)); len(f) > 1 {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			sum += n * int64(os.Getpagesize())
		}
	}
	return sum
}

// Anonymous is the resident memory of a process that is its own, not a
// file's, in bytes.
func Anonymous(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kb << 10
		}
	}
	return 0
}
