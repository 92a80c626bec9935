package output

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/runtime/tasklog"
)

// EnvProgress names the file in which a process may write its step: ProgressFile.
const EnvProgress = "HOLDFAST_PROGRESS_FILE"

// progressMost bounds the end of a progress file that is read.
const progressMost = 4 << 10

// ProgressFile is a file to which a process writes its step, over what it has written before,
// or after that, or by another file that it gives its name. Its last line counts:
//
//	{"step": 12, "total": 500, "loss": 0.5}
//
// where all but the step may be missing, or what a line of the output says. Scalars are found as
// in that. It may be used by several goroutines.
type ProgressFile struct {
	path  string
	steps *tasklog.StepFinder

	mu      sync.Mutex
	looked  time.Time // the last time
	read    []byte    // what was read last
	made    tasklog.Made
	total   int64
	scalars tasklog.Scalars
}

// NewProgressFile returns the progress file at a path, which need not exist. steps finds the
// steps in lines that are no JSON.
func NewProgressFile(path string, steps *tasklog.StepFinder) *ProgressFile {
	return &ProgressFile{path: path, steps: steps}
}

// Look reads the file, if there is one. A step is of the time at which the file was written, which
// is after the last look.
func (p *ProgressFile) Look(now time.Time) {
	line, written := p.last()
	p.mu.Lock()
	defer p.mu.Unlock()
	looked := p.looked
	p.looked = now
	if len(line) > 0 && !bytes.Equal(line, p.read) {
		p.read = line
		if written.Before(looked) {
			written = looked
		}
		if written.After(now) {
			written = now
		}
		p.take(line, written)
	}
}

// last returns the last line that is not empty, and when the file was written; nothing if there
// is none.
func (p *ProgressFile) last() (line []byte, written time.Time) {
	info, err := os.Lstat(p.path)
	if err != nil || !info.Mode().IsRegular() { // opening a FIFO would wait
		return nil, time.Time{}
	}
	f, err := os.Open(p.path)
	if err != nil {
		return nil, time.Time{}
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-progressMost), progressMost))
	if err != nil {
		return nil, time.Time{}
	}
	b = bytes.TrimSpace(b)
	return b[bytes.LastIndexByte(b, '\n')+1:], info.ModTime()
}

// inJSON match the members of an object; not in Go's package for JSON, which refuses a loss that
// is NaN, as Python writes it.
var (
	stepInJSON  = regexp.MustCompile(`"step"\s*:\s*(\d{1,12})\s*[,}]`)
	totalInJSON = regexp.MustCompile(`"total"\s*:\s*(\d{1,12})\s*[,}]`)
)

func (p *ProgressFile) take(line []byte, at time.Time) {
	if p.steps == nil { // the task serves: it makes no steps
		return
	}
	text := strings.ToValidUTF8(string(line), "�")
	if m := stepInJSON.FindStringSubmatch(text); m != nil {
		p.made.Report(number(m), at)
		p.total = number(totalInJSON.FindStringSubmatch(text))
	} else if n, ok := p.steps.In(text); ok {
		p.made.Report(n, at)
		p.total = p.steps.Total()
	} else {
		return
	}
	p.scalars.In(text)
}

// number returns the number in the group of a match; 0 if there is no match.
func number(match []string) int64 {
	if match == nil {
		return 0
	}
	n, _ := strconv.ParseInt(match[1], 10, 64) // digits, few enough
	return n
}

// Made returns the steps that the file has told of.
func (p *ProgressFile) Made() tasklog.Made {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.made
}

// TotalSteps returns how many steps the file says that the program makes; 0 if it does not.
func (p *ProgressFile) TotalSteps() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.total
}

// TakeScalars returns the scalars that the file has told of since its last call.
func (p *ProgressFile) TakeScalars() []tasklog.Scalar {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scalars.Take()
}
