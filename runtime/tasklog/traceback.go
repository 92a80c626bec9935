package tasklog

import (
	"regexp"
	"strings"
)

// Exception is an exception that a Python program has printed.
type Exception struct {
	Line string // names it: "ValueError: no such file"
	Text string // Line and what follows it, up to the next traceback: messages have many lines
	// Chained is true if the exception before it is a part of its traceback: its cause, what
	// was being handled, or its group.
	Chained bool
}

const (
	tracebackHead = "Traceback (most recent call last):"
	groupHead     = "Exception Group " + tracebackHead
	// strayLines is how many lines of others may stand in a traceback, one after the other.
	strayLines = 3
)

// What TracebackException.format in Lib/traceback.py writes.
var (
	frame = regexp.MustCompile(`^\s+File "`)
	// named is the line with the exception. Status codes and log levels, which are capitals, are not.
	named    = regexp.MustCompile(`^[\pL_][\pL\pN_.<>()]*(?::(?: .*)?)?$`)
	capitals = regexp.MustCompile(`^[A-Z_]+(?::|$)`)
	chain    = regexp.MustCompile(`^(?:The above exception was the direct cause of the following exception|During handling of the above exception, another exception occurred):$`)
	// inGroup stands before the lines of a group, part between those of its exceptions.
	inGroup = regexp.MustCompile(`^ +\| ?`)
	part    = regexp.MustCompile(`^ *\+[+-]*-+ (?:\d+|\.\.\.) -+$`)
	// ignored precedes exceptions that did not end the program: of destructors, and of what
	// it does at its exit.
	ignored = regexp.MustCompile(`^(?:Exception ignored |Error in atexit\.)`)
	// usual is a line that names an exception also where no traceback is seen.
	usual = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*)?(?:Error|Exception|Interrupt|Exit|Timeout)(?::.*)?$`)
)

// Exceptions returns the exceptions that a program's output tells of, in its order. The one
// that ends a traceback may have any name; of others, those are found whose names are usual for
// exceptions. The output is without escapes and without what launchers put before its lines.
func Exceptions(output string) []Exception {
	r := tracebackReader{output: withoutGroups(output)}
	at := 0
	for line := range strings.Lines(r.output) {
		r.read(at, strings.TrimRight(line, " \r\n"))
		at += len(line)
	}
	r.end(at)
	return r.found
}

// withoutGroups removes what stands before the lines of exception groups.
func withoutGroups(output string) string {
	if !strings.Contains(output, groupHead) {
		return output
	}
	var b strings.Builder
	in := false
	for line := range strings.Lines(output) {
		in = in || strings.Contains(line, groupHead)
		if in {
			line = line[len(inGroup.FindString(line)):]
		}
		b.WriteString(line)
	}
	return b.String()
}

// SourceLines tells the lines of a program's source, which tracebacks quote, from those that
// the program has printed. The zero value is ready to be used, by one goroutine at a time.
type SourceLines struct {
	after bool // the line before was a frame, or quoted
}

// framed is the line of a frame; below it is the source, indented further, with marks of the
// place (StackSummary.format_frame_summary in Lib/traceback.py).
var framed = regexp.MustCompile(`^\s+File "[^"]*", line \d+`)

const sourceIndent = "    "

// In takes in the next line, and reports whether it is one of a source.
func (s *SourceLines) In(line string) bool {
	line = clean(line)
	line = line[len(inGroup.FindString(line)):]
	source := s.after && strings.HasPrefix(line, sourceIndent)
	s.after = source || framed.MatchString(line)
	return source
}

// tracebackReader reads an output line by line.
type tracebackReader struct {
	output  string
	found   []Exception
	open    bool // the text of the last one found goes on, from begin
	begin   int
	in      bool // a traceback, of which the exception is still to come
	strays  int
	ended   bool // one, with the line before
	linked  bool // the next exception is chained to the last
	ignored bool // the next exception is one that Python ignored
}

func (r *tracebackReader) read(at int, line string) {
	ended := r.ended
	r.ended = false
	switch {
	case strings.HasSuffix(line, tracebackHead), part.MatchString(line):
		r.end(at)
		r.in, r.strays = true, 0
		r.linked = r.linked || !strings.HasSuffix(line, tracebackHead)
	case ignored.MatchString(line):
		r.end(at)
		r.in, r.linked, r.ignored = false, false, true
	case chain.MatchString(line):
		r.linked = true
	case frame.MatchString(line):
		if ended { // that was another's line, or quotes what was raised elsewhere
			r.in, r.linked = true, true
		}
		r.strays = 0
	case line == "" || line[0] == ' ' || line[0] == '\t':
	case r.in && named.MatchString(line) && !capitals.MatchString(line):
		r.in, r.ended = false, true
		r.add(at, line)
	case usual.MatchString(line):
		r.add(at, line)
	case r.in:
		r.strays++
		r.in = r.strays <= strayLines
	}
}

func (r *tracebackReader) add(at int, line string) {
	r.end(at)
	if !r.ignored {
		r.found = append(r.found, Exception{Line: line, Chained: r.linked && len(r.found) > 0})
		r.open, r.begin = true, at
	}
	r.linked, r.ignored = false, false
}

// end ends the text of the last exception.
func (r *tracebackReader) end(at int) {
	if r.open {
		r.found[len(r.found)-1].Text = r.output[r.begin:at]
	}
	r.open = false
}
