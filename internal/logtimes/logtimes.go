// Package logtimes records when the parts of a log were written, in a file beside it, as
// the log itself has no times.
//
// The file has a line "OFFSET SECONDS" for each part, both in decimal: the part begins at
// OFFSET in the log, and its first byte was written at SECONDS since 1970. It ends where the
// next part begins. Both only grow. What is no such line is ignored, as a writer that fails
// may leave half a line, and writes parts again that it is not sure about.
//
// Parts are a second long or longer. So that the file stays small however long a task runs,
// that doubles after each stepParts parts: 60 KB are written in the first hour with output,
// and less than 1 MB in a year.
package logtimes

import (
	"bytes"
	"math"
	"sort"
	"strconv"
	"time"
)

const (
	stepParts  = 3600
	maxDoubles = 20

	// MaxSize bounds what is read of a file.
	MaxSize = 4 << 20
	// lineSize bounds a line.
	lineSize = 48
)

// length returns the least length of part number n.
func length(n int) time.Duration { return time.Second << min(n/stepParts, maxDoubles) }

// Marker decides where parts begin. It is for one goroutine. The zero value is ready for
// a new log.
type Marker struct {
	parts int
	last  time.Time
}

// Begins reports whether what is written at a time begins a part.
func (m *Marker) Begins(at time.Time) bool {
	if m.parts > 0 && at.Sub(m.last) < length(m.parts-1) && !at.Before(m.last) {
		return false
	}
	m.parts++
	m.last = at
	return true
}

// AppendPart appends the line of a part to b.
func AppendPart(b []byte, offset int64, at time.Time) []byte {
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, ' ')
	b = strconv.AppendInt(b, at.Unix(), 10)
	return append(b, '\n')
}

// Index is what a file says. It does not change.
type Index struct{ parts []part }

type part struct{ offset, seconds int64 }

// Parse reads a file.
func Parse(text []byte) *Index {
	x := &Index{}
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		text = rest
		p, ok := parsePart(line)
		if !ok || !ended {
			continue
		}
		if n := len(x.parts); n > 0 && (p.offset <= x.parts[n-1].offset || p.seconds < x.parts[n-1].seconds) {
			continue
		}
		x.parts = append(x.parts, p)
	}
	return x
}

func parsePart(line []byte) (part, bool) {
	if len(line) > lineSize {
		return part{}, false
	}
	first, second, ok := bytes.Cut(line, []byte(" "))
	offset, err1 := strconv.ParseInt(string(first), 10, 64)
	seconds, err2 := strconv.ParseInt(string(second), 10, 64)
	return part{offset, seconds}, ok && err1 == nil && err2 == nil && offset >= 0 && seconds >= 0
}

// At returns when what is at an offset was written; false if that is not known.
func (x *Index) At(offset int64) (time.Time, bool) {
	i := sort.Search(len(x.parts), func(i int) bool { return x.parts[i].offset > offset })
	if i == 0 {
		return time.Time{}, false
	}
	return time.Unix(x.parts[i-1].seconds, 0), true
}

// Since returns where what was written at a time or later begins, or up to the length of a
// part before that. It returns the greatest offset there is if nothing was.
func (x *Index) Since(at time.Time) (offset int64) {
	i := sort.Search(len(x.parts), func(i int) bool {
		return time.Unix(x.parts[i].seconds, 0).Add(length(i)).After(at)
	})
	if i == len(x.parts) {
		return math.MaxInt64
	}
	return x.parts[i].offset
}
