package proctree

import (
	"math/rand/v2"
	"sync"
	"time"

	"holdfast/internal/proc"
)

// Work counts how often processes were at work when they were looked at: when one of their
// threads ran, waited for a CPU or a disk, or was stopped. Threads that wait for each other, for
// another process or for a network do not work. The zero value is ready to be used.
type Work struct {
	mu          sync.Mutex
	pids        []int
	looks, work int64
}

// Looks come at random times, about three a second: at regular ones, steps that take as long
// would always be seen in the same place.
const (
	leastPause = 100 * time.Millisecond
	mostPause  = 500 * time.Millisecond
)

// Watch looks until done is closed.
func (w *Work) Watch(done <-chan struct{}) {
	timer := time.NewTimer(leastPause)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return
		case <-timer.C:
			w.look()
			timer.Reset(leastPause + rand.N(mostPause-leastPause))
		}
	}
}

// Of sets which processes are looked at.
func (w *Work) Of(pids []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pids = pids
}

// Counts returns how often they were looked at, and were at work.
func (w *Work) Counts() (looks, work int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, w.work
}

func (w *Work) look() {
	w.mu.Lock()
	pids := w.pids
	w.mu.Unlock()
	if len(pids) == 0 {
		return
	}
	works := atWork(pids)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if works {
		w.work++
	}
}

// atWork reports whether a thread of one of the processes is.
func atWork(pids []int) bool {
	for _, pid := range pids {
		threads, _ := proc.Threads(pid)
		for _, tid := range threads {
			s, err := proc.ReadStat(tid)
			if err != nil {
				continue // it has gone
			}
			switch s.State {
			case 'R', 'D', 'T', 't':
				return true
			}
		}
	}
	return false
}
