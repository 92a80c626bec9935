package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/logtimes"
	"holdfast/proto"
)

// source is one log, and how far it was read.
type source struct {
	task    string
	attempt int
	process int
	path    string // in the job's store
	offset  int64
	rest    []byte // an unfinished line
	begun   bool

	times    *logtimes.Index // nil: they are not known, or not asked for
	timeless bool            // they were asked for, and are not known
}

// find lists the logs that o selects, in order.
func find(ctx context.Context, j *jobs.Job, s *proto.JobStatus, o Options) ([]*source, error) {
	switch {
	case o.Of == Master && j.Local():
		return existing(ctx, j, []*source{{task: Master, path: path.Join(j.Dir(), jobs.MasterLog)}}), nil
	case o.Of == Master:
		return logsIn(ctx, j, path.Join(j.Dir(), proto.MasterLogsDir), Master, o)
	case o.Agents:
		return ofAgents(ctx, j, s, o)
	}
	root := path.Join(j.Dir(), proto.LogsDir)
	directories, err := j.Store().List(ctx, root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the logs of %s: %w", j.ID, err)
	}
	var tasks []string
	for _, e := range directories {
		tasks = append(tasks, e.Name)
	}
	if o.Of != "" {
		tasks = match(o.Of, tasks)
	}
	sort.Slice(tasks, func(a, b int) bool { return taskLess(tasks[a], tasks[b]) })
	var found []*source
	for _, t := range tasks {
		of, err := logsIn(ctx, j, path.Join(root, t), t, o)
		if err != nil {
			return nil, err
		}
		found = append(found, of...)
	}
	return found, nil
}

// ofAgents lists the logs of the agents in the containers that tasks have and had: of a
// container that had several attempts, the last one is named.
func ofAgents(ctx context.Context, j *jobs.Job, s *proto.JobStatus, o Options) ([]*source, error) {
	tasks, err := Tasks(s, o.Of)
	if err != nil {
		return nil, err
	}
	name := proto.AgentLogName
	if j.Local() {
		name = func(container string) string { return path.Join("containers", container, "agent.log") }
	}
	lost := map[string][]*proto.Incident{}
	for _, i := range s.Incidents {
		lost[i.Task] = append(lost[i.Task], i)
	}
	var list []*source
	for _, t := range tasks {
		known := map[string]*source{}
		add := func(container string, attempt int32) {
			if container == "" {
				return
			}
			if known[container] == nil {
				known[container] = &source{task: t.Task, path: path.Join(j.Dir(), name(container))}
				list = append(list, known[container])
			}
			known[container].attempt = int(attempt)
		}
		for _, i := range lost[t.Task] {
			add(i.Container, i.Attempt)
		}
		add(t.Container, t.Attempt)
	}
	return existing(ctx, j, list), nil
}

// logsIn lists the logs in a directory, which are of a task or the application master, that
// o selects.
func logsIn(ctx context.Context, j *jobs.Job, dir, task string, o Options) ([]*source, error) {
	list, err := j.Store().List(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the logs of %s: %w", task, err)
	}
	var of []*source
	for _, e := range list {
		attempt, process, ok := proto.ParseLogName(e.Name)
		if ok && (o.Attempt < 0 || o.Attempt == attempt) {
			of = append(of, &source{task: task, attempt: attempt, process: process, path: path.Join(dir, e.Name)})
		}
	}
	slices.SortFunc(of, func(a, b *source) int {
		return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.process, b.process))
	})
	if o.Previous {
		of = previous(of)
	}
	return of, nil
}

// previous returns the logs of the attempt before the last one of a sorted list.
func previous(of []*source) []*source {
	before := func(end int) int { // where the attempt begins that ends there
		begin := end
		for begin > 0 && of[begin-1].attempt == of[end-1].attempt {
			begin--
		}
		return begin
	}
	end := before(len(of))
	return of[before(end):end]
}

// existing returns those of a list that exist.
func existing(ctx context.Context, j *jobs.Job, list []*source) []*source {
	return slices.DeleteFunc(list, func(s *source) bool {
		_, err := j.Store().Stat(ctx, s.path)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// taskLess orders worker-2 before worker-10.
func taskLess(a, b string) bool {
	i, k := strings.LastIndexByte(a, '-'), strings.LastIndexByte(b, '-')
	if i > 0 && k > 0 && a[:i] == b[:k] {
		n, err1 := strconv.Atoi(a[i+1:])
		m, err2 := strconv.Atoi(b[k+1:])
		if err1 == nil && err2 == nil {
			return n < m
		}
	}
	return a < b
}

// chunk is how much is read at once.
const chunk = 256 << 10

// copy emits the new lines of a log; an unfinished line only if last. The first call
// begins where Options.Tail says.
func (s *source) copy(ctx context.Context, from store.Store, o Options, last bool, emit func(Line) error) (err, emitErr error) {
	r, err := from.Open(ctx, s.path)
	if err != nil {
		return err, nil
	}
	defer r.Close()
	selected := func(l Line) error {
		if o.Matches != nil && !o.Matches(l.Text) {
			return nil
		}
		return emit(l)
	}
	size := r.Size() // before the times are read, which are written before what they are of
	if (o.Times || !o.Since.IsZero() && !s.begun) && size > s.offset {
		if err := s.readTimes(ctx, from); err != nil {
			return err, nil
		}
	}
	if !s.begun {
		from := s.offset
		if s.times != nil && !o.Since.IsZero() {
			if from, err = lineAt(r, min(s.times.Since(o.Since), size), size); err != nil {
				return err, nil
			}
		}
		if o.Tail >= 0 && o.Matches != nil {
			held := &lastLines{most: o.Tail}
			s.offset = from
			if err, emitErr := s.lines(r, size, last, o, func(l Line) error {
				if o.Matches(l.Text) {
					held.add(l)
				}
				return nil
			}); err != nil || emitErr != nil {
				s.offset, s.rest = 0, nil // what is held was not emitted
				return err, emitErr
			}
			s.begun = true
			for _, l := range held.list {
				if err := emit(l); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}
		if o.Tail >= 0 {
			tail, err := tailOffset(r, size, o.Tail)
			if err != nil {
				return err, nil
			}
			from = max(from, tail)
		}
		s.offset, s.begun = from, true
	}
	return s.lines(r, size, last, o, selected)
}

// readTimes reads when the log was written.
func (s *source) readTimes(ctx context.Context, from store.Store) error {
	r, err := from.Open(ctx, proto.LogTimesName(s.path))
	if errors.Is(err, fs.ErrNotExist) {
		s.timeless = true
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	text := make([]byte, min(r.Size(), logtimes.MaxSize))
	n, err := r.ReadAt(text, 0)
	if err != nil && err != io.EOF {
		return fmt.Errorf("read when it was written: %w", err)
	}
	s.times = logtimes.Parse(text[:n])
	return nil
}

// line returns the line that begins at an offset.
func (s *source) line(at int64, text string, o Options) Line {
	l := Line{Task: s.task, Attempt: s.attempt, Process: s.process, Text: text}
	if o.Times && s.times != nil {
		if t, ok := s.times.At(at); ok {
			l.Time = t.UTC().Format(time.RFC3339)
		}
	}
	return l
}

// lines calls emit with the lines from the offset to size.
func (s *source) lines(r io.ReaderAt, size int64, last bool, o Options, emit func(Line) error) (err, emitErr error) {
	buffer := make([]byte, chunk)
	for s.offset < size {
		n, err := r.ReadAt(buffer[:min(int64(len(buffer)), size-s.offset)], s.offset)
		if err != nil && err != io.EOF {
			return err, nil
		}
		if n == 0 {
			break
		}
		at := s.offset - int64(len(s.rest)) // of the next line
		s.offset += int64(n)
		// What was read before has no line feed: a long line is not looked through again with each part.
		for part := range bytes.Lines(buffer[:n]) {
			s.rest = append(s.rest, part...)
			line, ended := bytes.CutSuffix(s.rest, []byte{'\n'})
			if !ended {
				break
			}
			length, text := int64(len(s.rest)), string(bytes.TrimSuffix(line, []byte{'\r'}))
			s.rest = s.rest[:0]
			if err := emit(s.line(at, text, o)); err != nil {
				return nil, err
			}
			at += length
		}
	}
	if last && len(s.rest) > 0 {
		text := string(s.rest)
		s.rest = nil
		return nil, emit(s.line(s.offset-int64(len(text)), text, o))
	}
	return nil, nil
}

// lastLines holds the last lines of those that are added.
type lastLines struct {
	most int
	list []Line
}

func (l *lastLines) add(line Line) {
	if l.list = append(l.list, line); len(l.list) > l.most {
		l.list = slices.Delete(l.list, 0, 1)
	}
}

// lineAt returns where the line begins that has an offset in it, at most chunk bytes before;
// the offset itself at the end of a log of this size.
func lineAt(r io.ReaderAt, offset, size int64) (int64, error) {
	if offset == 0 || offset >= size {
		return offset, nil
	}
	from := max(0, offset-chunk)
	before := make([]byte, offset-from)
	if _, err := r.ReadAt(before, from); err != nil && err != io.EOF {
		return 0, err
	}
	if i := bytes.LastIndexByte(before, '\n'); i >= 0 || from == 0 {
		return from + int64(i) + 1, nil
	}
	return offset, nil
}

// tailOffset returns where the last n lines of a log of this size begin.
func tailOffset(r io.ReaderAt, size int64, n int) (int64, error) {
	if n == 0 {
		return size, nil
	}
	buffer := make([]byte, chunk)
	found := 0
	for end := size; end > 0; {
		at := max(0, end-chunk)
		b := buffer[:end-at]
		if _, err := r.ReadAt(b, at); err != nil && err != io.EOF {
			return 0, err
		}
		for i := bytes.LastIndexByte(b, '\n'); i >= 0; i = bytes.LastIndexByte(b[:i], '\n') {
			if at+int64(i) == size-1 {
				continue // it ends the last line
			}
			if found++; found == n {
				return at + int64(i) + 1, nil
			}
		}
		end = at
	}
	return 0, nil
}
