// Package proctree finds, measures and kills trees of processes. It starts no goroutine.
package proctree

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/proc"
)

// Descendants returns the living processes below root, parents before children, without
// root itself and zombies, but with children of zombies. It omits spared processes and all
// below them.
func Descendants(root int, spared ...int) []int {
	all, _ := proc.Processes()
	children := map[int][]int{}
	ended := map[int]bool{}
	for _, pid := range all {
		s, err := proc.ReadStat(pid)
		if err != nil {
			continue // it has gone
		}
		children[s.Parent] = append(children[s.Parent], pid)
		ended[pid] = s.Ended()
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
			if !ended[c] {
				found = append(found, c)
			}
		}
	}
	return found
}

// Parent returns the parent of a process; ok is false if there is no such process.
func Parent(pid int) (parent int, ok bool) {
	s, err := proc.ReadStat(pid)
	return s.Parent, err == nil
}

// Spare returns the processes that are not killed in a round of KillDescendants, which calls
// release when the round is over.
type Spare func() (spared []int, release func())

// KillDescendants sends SIGKILL to all below root until none is left or ctx
// ends. It finds those that were forked meanwhile in the next round. root must be a
// subreaper: otherwise orphans are not found. Processes that spare returns, which may be nil,
// and all below them are not killed.
func KillDescendants(ctx context.Context, root int, spare Spare) error {
	for wait := backoff.New(time.Millisecond, 50*time.Millisecond); ; {
		left := killRound(root, spare)
		if len(left) == 0 {
			return nil
		}
		if !wait.Wait(ctx) {
			return fmt.Errorf("ending the processes below %d: %d are left, %d first: %w", root, len(left), left[0], ctx.Err())
		}
	}
}

// killRound sends SIGKILL to all below root that are not spared, and returns them.
func killRound(root int, spare Spare) []int {
	var spared []int
	if spare != nil {
		list, release := spare()
		defer release()
		spared = list
	}
	left := Descendants(root, spared...)
	for _, p := range left {
		_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended just now
	}
	return left
}

// SigkillDescendants sends SIGKILL to all processes below root and returns their number. It
// returns once each has got the signal, so that none executes any more, but does not wait
// until they are gone. root must be a subreaper.
func SigkillDescendants(root int) int {
	signalled := map[int]bool{}
	for more := true; more; {
		more = false
		for _, p := range Descendants(root) {
			if !signalled[p] {
				signalled[p], more = true, true
				_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended just now
			}
		}
	}
	return len(signalled)
}

// RSS returns the resident memory of processes, in bytes. Pages that they share are
// counted for each; processes that have ended are not counted.
func RSS(pids ...int) int64 {
	var sum int64
	for _, pid := range pids {
		n, _ := proc.RSS(pid)
		sum += n
	}
	return sum
}

// Usage returns the CPU time and the bytes read and written of processes since they began, as
// far as that can be read; of those that have ended, nothing.
func Usage(pids ...int) (cpu time.Duration, bytes int64) {
	for _, pid := range pids {
		if s, err := proc.ReadStat(pid); err == nil {
			cpu += s.CPU
		}
		n, _ := proc.IO(pid)
		bytes += n
	}
	return cpu, bytes
}

// Anonymous returns the resident anonymous memory of a process, in bytes; 0 if it has
// ended.
func Anonymous(pid int) int64 {
	status, _ := proc.ReadStatus(pid)
	return status.Bytes("RssAnon")
}
