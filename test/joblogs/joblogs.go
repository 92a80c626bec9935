// Package joblogs follows what the tasks of a job print into the local files of their
// agents, which an agent writes at once: TASK.ATTEMPT.log in its container's directory.
package joblogs

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// lookEvery bounds how much later a line is seen than it was printed.
const lookEvery = 50 * time.Millisecond

// Line is a line that a task has printed, without its end. A bar that is written over
// with carriage returns is as many lines.
type Line struct {
	At   time.Time // when it was seen
	Task string
	File string // one for each attempt in each container
	Text string
}

// Follower follows the files of a job. Its one goroutine ends with Stop.
type Follower struct {
	pattern string
	take    func(Line)
	files   map[string]*file
	end     chan struct{}
	ended   sync.WaitGroup
}

// file is read as it grows, also after it was unlinked.
type file struct {
	name, task string
	open       *os.File
	rest       []byte // of a line that is not finished
}

// Follow follows the files that match a pattern, of which there may be more with time,
// and calls take with each line, from one goroutine.
func Follow(pattern string, take func(Line)) *Follower {
	f := &Follower{pattern: pattern, take: take, files: map[string]*file{}, end: make(chan struct{})}
	f.ended.Go(func() {
		f.look()
		for ended := false; !ended; f.look() {
			select {
			case <-f.end:
				ended = true
			case <-time.After(lookEvery):
			}
		}
	})
	return f
}

// Stop ends following, once what is there now has been seen; take is not called any more.
func (f *Follower) Stop() {
	close(f.end)
	f.ended.Wait()
	for _, l := range f.files {
		l.open.Close()
	}
}

func (f *Follower) look() {
	names, _ := filepath.Glob(f.pattern) // the pattern is well-formed
	for _, name := range names {
		task, _, _ := strings.Cut(filepath.Base(name), ".")
		if f.files[name] != nil || !strings.Contains(task, "-") {
			continue
		}
		if open, err := os.Open(name); err == nil { // else it is gone already
			f.files[name] = &file{name: name, task: task, open: open}
		}
	}
	for _, l := range f.files {
		text, _ := io.ReadAll(l.open) // what can be read counts
		if len(text) == 0 {
			continue
		}
		text = bytes.ReplaceAll(append(l.rest, text...), []byte("\r"), []byte("\n"))
		all := bytes.Split(text, []byte("\n"))
		l.rest = bytes.Clone(all[len(all)-1])
		now := time.Now()
		for _, line := range all[:len(all)-1] {
			f.take(Line{now, l.task, l.name, string(line)})
		}
	}
}
