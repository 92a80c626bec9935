// Package output captures what an attempt of a task prints: in a local file, in the job's
// directory with the times at which it was written, and its last lines in memory.
package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/internal/logtimes"
	"holdfast/runtime/tasklog"
)

const (
	heardLines = 400  // that are kept, to be explained: a TensorFlow error quotes its graph
	tailWidth  = 1000 // bytes of a line that are kept for the tail
	stepWidth  = 4000 // bytes of a line in which a step is looked for
)

// Output captures what an attempt prints: in a local file at once, in the job's directory
// soon afterwards, and its last lines in memory. The task never waits for the store.
type Output struct {
	log   *logrus.Entry
	local *os.File
	pipe  *os.File
	name  string        // of the copy, relative to the job's directory
	read  chan struct{} // all has been read

	steps   *tasklog.StepFinder
	mu      sync.Mutex
	scalars tasklog.Scalars
	sources tasklog.SourceLines
	made    tasklog.Made
	lines   []string
	count   int64  // of lines that were finished, ever
	partial []byte // the line that is not finished
	// rewritten says that the unfinished line is written over and over.
	rewritten bool
	written   time.Time // when the last line was written that is not empty
	pending   copied    // for the store
	lost      int64     // bytes that were dropped since it did not keep up
	marker    logtimes.Marker
}

// New creates the local file and returns the end of a pipe for the task to write to. The
// caller closes it once the task has it.
func New(file, name string, steps *tasklog.StepFinder, log *logrus.Entry) (*Output, *os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("making the file for the task's output: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("making a pipe for the task's output: %w", err)
	}
	o := &Output{log: log, local: f, pipe: r, name: name, steps: steps, read: make(chan struct{})}
	go o.pump()
	return o, w, nil
}

// Done is closed when all has been read.
func (o *Output) Done() <-chan struct{} { return o.read }

// GiveUp stops reading, for when a process that does not end has the pipe.
func (o *Output) GiveUp() { o.pipe.SetReadDeadline(time.Unix(1, 0)) }

func (o *Output) pump() {
	defer close(o.read)
	defer o.local.Close()
	defer o.pipe.Close()
	buf := make([]byte, 16<<10)
	failed := false
	for {
		n, err := o.pipe.Read(buf)
		if n > 0 {
			if _, err := o.local.Write(buf[:n]); err != nil && !failed {
				failed = true
				o.log.WithError(err).WithField("file", o.local.Name()).Warn("the task's output cannot be written to its local file; it still goes to the job's directory")
			}
			o.take(time.Now(), buf[:n])
		}
		if err != nil {
			if err != io.EOF {
				o.log.WithError(err).Warn("reading the task's output")
			}
			return
		}
	}
}

// take takes in what was read at a time.
func (o *Output) take(at time.Time, b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.marker.Begins(at) {
		o.pending.parts = append(o.pending.parts, part{len(o.pending.text), at})
	}
	o.pending.text = append(o.pending.text, b...)
	o.lost += o.pending.limit()
	if len(bytes.TrimSpace(b)) > 0 {
		o.written = at
	}
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			o.partial = append(o.partial, b...)
			over := bytes.IndexByte(o.partial, '\r') >= 0 // it is a line that rewrites itself
			o.partial = clip(o.partial)
			if over || o.rewritten {
				o.rewritten = true
				if n, ok := o.steps.InBar(string(o.partial)); ok {
					o.made.Report(n, at)
				}
				o.scalars.InText(strings.ToValidUTF8(string(o.partial), "�"))
			}
			return
		}
		o.rewritten = false
		o.push(at, append(o.partial, b[:i]...))
		o.partial = o.partial[:0]
		b = b[i+1:]
	}
}

// clip bounds a line: it keeps the last state of one that rewrites itself (progress bars),
// and the beginning of others.
func clip(line []byte) []byte {
	if i := bytes.LastIndexByte(line[:max(len(line)-1, 0)], '\r'); i >= 0 {
		line = append(line[:0], line[i+1:]...)
	}
	return line[:min(len(line), tailWidth)]
}

func (o *Output) push(at time.Time, line []byte) {
	told := line[:min(len(line), stepWidth)]
	if bytes.IndexByte(line, '\r') >= 0 { // what was written last is at the end
		told = line[max(0, len(line)-stepWidth):]
	}
	read := strings.ToValidUTF8(string(told), "�")
	if !o.sources.In(read) {
		if n, ok := o.steps.In(read); ok {
			o.made.Report(n, at)
		}
		o.scalars.In(read)
	}
	text := strings.ToValidUTF8(strings.TrimRight(string(clip(line)), "\r"), "�")
	if len(o.lines) == heardLines {
		o.lines = append(o.lines[:0], o.lines[1:]...)
	}
	o.lines = append(o.lines, text)
	o.count++
}

// Made returns the steps in the output.
func (o *Output) Made() tasklog.Made {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.made
}

// TakeScalars returns the scalars that the output has named since its last call.
func (o *Output) TakeScalars() []tasklog.Scalar {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.scalars.Take()
}

// TotalSteps returns how many steps the output says that the program makes; 0 if it does not
// say.
func (o *Output) TotalSteps() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.steps.Total()
}

// lineWidth bounds the bytes of the last line.
const lineWidth = 160

// LastLine returns the last line that is not empty, in plain text and cut to 160 bytes, and
// when it was written; an empty text if there is none.
func (o *Output) LastLine() (text string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if text = tasklog.Plain(strings.ToValidUTF8(string(o.partial), "\uFFFD")); text == "" {
		for _, line := range slices.Backward(o.lines) {
			if text = tasklog.Plain(line); text != "" {
				break
			}
		}
	}
	if len(text) > lineWidth {
		text = strings.ToValidUTF8(text[:lineWidth-len("…")], "") + "…"
	}
	return text, o.written
}

// OtherProgress changes while the output shows progress that is no step.
func (o *Output) OtherProgress() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.steps.OtherBars()
}

// Lines returns the last lines, more than are reported.
func (o *Output) Lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	t := append([]string(nil), o.lines...)
	if len(o.partial) > 0 {
		t = append(t, strings.ToValidUTF8(string(o.partial), "�"))
	}
	return t
}

// Count returns how many lines were finished so far.
func (o *Output) Count() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count
}

// Since returns the lines that were finished after Count had returned count, or the last
// of them, if they are more than are kept.
func (o *Output) Since(count int64) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(o.count-count, int64(len(o.lines)))
	return append([]string(nil), o.lines[int64(len(o.lines))-n:]...)
}
