package web

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/client/terminal"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

const (
	// logShown is how many bytes of the end of a log are shown.
	logShown = 64 << 10
	// logSearched is how many bytes of the end of a log are searched, and logFound how many
	// lines of what is found are shown.
	logSearched = 32 << 20
	logFound    = 500
	// lineSearched is how many bytes of a line are searched and shown.
	lineSearched = 8 << 10
	// logTimeout bounds the time that the store may take.
	logTimeout = 20 * time.Second
)

// logFile is the output of one process of an attempt.
type logFile struct {
	Task             string
	Attempt, Process int
	Size             int64
}

// Path returns where the log is, below the job's directory.
func (l logFile) Path() string {
	return path.Join(proto.LogsDir, l.Task, proto.LogName(l.Attempt, l.Process))
}

// Parameters returns the parameters by which addresses name the log, encoded.
func (l logFile) Parameters() template.URL {
	p := url.Values{"task": {l.Task}, "attempt": {strconv.Itoa(l.Attempt)}}
	if l.Process > 0 {
		p.Set("process", strconv.Itoa(l.Process))
	}
	return template.URL(p.Encode())
}

// Title names the log among those of its task.
func (l logFile) Title() string {
	if l.Process > 0 {
		return fmt.Sprintf("attempt %d, process %d", l.Attempt, l.Process)
	}
	return fmt.Sprintf("attempt %d", l.Attempt)
}

// logView is a part of a log.
type logView struct {
	logFile
	Text   string
	Cut    bool // there is more before it
	Search string
	Found  int // lines, of which the last ones are in Text
}

// logsOf lists the logs of a task in the order of its attempts.
func (s *server) logsOf(ctx context.Context, task string) ([]logFile, error) {
	if s.Files == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	list, err := s.Files.List(ctx, path.Join(s.Dir, proto.LogsDir, task))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", task, err)
	}
	var logs []logFile
	for _, e := range list {
		if attempt, process, ok := proto.ParseLogName(e.Name); ok {
			logs = append(logs, logFile{task, attempt, process, e.Size})
		}
	}
	slices.SortFunc(logs, func(a, b logFile) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Process, b.Process))
	})
	return logs, nil
}

// openLog opens a log. The caller closes the reader.
func (s *server) openLog(ctx context.Context, l logFile) (store.Reader, error) {
	r, err := s.Files.Open(ctx, path.Join(s.Dir, l.Path()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s of %s has written nothing: %w", l.Title(), l.Task, err)
	}
	return r, err
}

// readLog reads the end of a log, or the last of its lines that have a text in them.
func (s *server) readLog(ctx context.Context, l logFile, search string) (*logView, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	r, err := s.openLog(ctx, l)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	v := &logView{logFile: l, Search: search}
	v.Size = r.Size()
	var lines []string
	if search == "" {
		lines, v.Cut, err = lastLines(r, v.Size)
	} else {
		lines, v.Found, err = s.searchLog(ctx, r, v.Size, search)
		v.Cut = v.Size > logSearched
	}
	if err != nil {
		return nil, fmt.Errorf("read %s of %s: %w", l.Title(), l.Task, err)
	}
	for i, line := range lines {
		lines[i] = terminal.Shown(line, false)
	}
	v.Text = strings.Join(lines, "\n")
	return v, nil
}

// lastLines returns the lines in the last logShown bytes of a log, and whether there is
// more before them.
func lastLines(r io.ReaderAt, size int64) (lines []string, cut bool, err error) {
	from := max(0, size-logShown)
	text := make([]byte, size-from)
	n, err := r.ReadAt(text, from)
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	lines = strings.Split(strings.TrimSuffix(string(text[:n]), "\n"), "\n")
	if from > 0 && len(lines) > 1 {
		lines = lines[1:] // its beginning is missing
	}
	return lines, from > 0, nil
}

// searchLog is searchLines when its turn has come, since much is read for each search.
func (s *server) searchLog(ctx context.Context, r io.ReaderAt, size int64, text string) (lines []string, found int, err error) {
	over, err := s.search.wait(ctx)
	if err != nil {
		return nil, 0, fmt.Errorf("others are searched first: %w", err)
	}
	defer over()
	return searchLines(r, size, text)
}

// searchLines returns the last logFound lines that have a text in them, in any case, of the
// last logSearched bytes of a log, and how many such lines there are. Of a line it takes what is
// shown, which is what follows the last carriage return, and of that lineSearched bytes. It holds
// no more than those of the lines that it returns in memory.
func searchLines(r io.ReaderAt, size int64, text string) (lines []string, found int, err error) {
	from := max(0, size-logSearched)
	scan := bufio.NewReaderSize(io.NewSectionReader(r, from, size-from), lineSearched)
	wanted := strings.ToLower(text)
	var line shownLine
	for ended := false; !ended; {
		part, isPrefix, err := scan.ReadLine()
		if ended = err == io.EOF; err != nil && !ended {
			return nil, 0, err
		}
		line.add(part)
		if isPrefix {
			continue
		}
		if shown := string(line.text); strings.Contains(strings.ToLower(shown), wanted) {
			found++
			if lines = append(lines, shown); len(lines) > logFound {
				lines = slices.Delete(lines, 0, 1)
			}
		}
		line = shownLine{text: line.text[:0]}
	}
	return lines, found, nil
}

// shownLine is what is shown of a line that is read in parts, up to lineSearched bytes.
type shownLine struct {
	text     []byte
	returned bool // what follows is written over it
}

func (l *shownLine) add(part []byte) {
	for {
		piece, rest, returned := bytes.Cut(part, []byte{'\r'})
		if len(piece) > 0 {
			if l.returned {
				l.text, l.returned = l.text[:0], false
			}
			l.text = append(l.text, piece[:min(len(piece), lineSearched-len(l.text))]...)
		}
		if !returned {
			return
		}
		l.returned, part = true, rest
	}
}

// log answers with a whole log, as it was written. It says how long that is, so that nobody takes
// a part of a log for all of it where it cannot be read to its end.
func (s *server) log(w http.ResponseWriter, r *http.Request) {
	p := parametersOf(r)
	attempt, process := p.number("attempt", -1, 0), p.number("process", 0, 0)
	status, _ := s.Status.Snapshot()
	t := taskOf(status, p.Get("task"))
	switch {
	case p.err != nil:
		failWith(w, r, p.err)
		return
	case t == nil || attempt < 0 || s.Files == nil:
		failWith(w, r, errNotFound)
		return
	}
	text, err := s.openLog(r.Context(), logFile{Task: t.Task, Attempt: attempt, Process: process})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer text.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Length", strconv.FormatInt(text.Size(), 10))
	if r.Method == http.MethodHead {
		return
	}
	// An answer that ends early is broken off.
	_, _ = io.Copy(&patientWriter{w, http.NewResponseController(w)}, io.NewSectionReader(text, 0, text.Size()))
}

// patientWriter allows each part of a long response its own time.
type patientWriter struct {
	w       io.Writer
	control *http.ResponseController
}

func (p *patientWriter) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(sendTimeout)) // a test's recorder has none
	return p.w.Write(b)
}
