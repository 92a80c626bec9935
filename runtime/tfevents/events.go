package tfevents

import (
	"sync"
	"time"

	"holdfast/runtime/tasklog"
)

// maxFiles bounds the files that are read at the same time; those that were written to
// last are.
const maxFiles = 8

// Events are what event files have told. The zero value is ready to be used, by several
// goroutines at once.
type Events struct {
	mu      sync.Mutex
	began   time.Time // the attempt; zero: none has
	files   []*file   // the one that was written to last at the end
	made    tasklog.Made
	scalars tasklog.Scalars
}

type file struct {
	name string
	decoder
}

// Write takes in bytes that were written to an event file at an offset.
func (e *Events) Write(name string, at int64, b []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.file(name).write(at, b, func(of time.Time, step int64, list []scalar) {
		if of.Before(e.began) || of.After(now) { // it cannot be
			of = now
		}
		if step != 0 && len(list) > 0 { // others have steps of their own: graphs and profiles
			e.made.Report(step, of)
		}
		for _, s := range list {
			e.scalars.Add(s.tag, s.value)
		}
	})
}

// file returns the file with a name. e.mu is held.
func (e *Events) file(name string) *file {
	last := &file{name: name}
	kept := e.files[:0]
	for _, f := range e.files {
		if f.name == name {
			last = f
			continue
		}
		kept = append(kept, f)
	}
	if len(kept) == maxFiles {
		kept = append(kept[:0], kept[1:]...)
	}
	e.files = append(kept, last)
	return last
}

// Begin forgets the step and the scalars of the attempt before. Events are of the time that they
// have themselves, as writers keep them back, if it is after this.
func (e *Events) Begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.began, e.made, e.scalars = time.Now(), tasklog.Made{}, tasklog.Scalars{}
}

// Made returns the steps of the scalars.
func (e *Events) Made() tasklog.Made {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.made
}

// TakeScalars returns the scalars that were found since its last call.
func (e *Events) TakeScalars() []tasklog.Scalar {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.scalars.Take()
}
