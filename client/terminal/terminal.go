// Package terminal protects terminals from control characters in foreign text.
//
// Commands print names and texts that were written by tasks, or by whoever can write to
// a checkpoint directory. Unfiltered, they could overwrite what was printed before, set
// the terminal's title, or make it answer on standard input. All output therefore
// passes through Printable, which drops control characters. A task's own output, and
// intended control sequences, are written to Raw.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// isControl reports whether a terminal interprets a character instead of showing it:
// control characters of ASCII (except line feed and tab) and Latin-1, and those that
// change the direction of text.
func isControl(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Clean removes control characters from a text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return -1
		}
		return r
	}, s)
}

// Printable returns a writer that drops control characters. It is not safe for
// concurrent use.
func Printable(w io.Writer) io.Writer { return &printableWriter{raw: w} }

type printableWriter struct {
	raw  io.Writer
	rest []byte // the beginning of a character
}

func (p *printableWriter) Write(b []byte) (int, error) {
	text := append(p.rest, b...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if tail := text[len(text)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				end -= back
			}
			break
		}
	}
	p.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(p.raw, Clean(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Raw returns the writer underneath a Printable; any other writer is returned as it is.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*printableWriter); ok {
		return p.raw
	}
	return w
}

// EscapeJSON escapes control characters in JSON text.
func EscapeJSON(text string) string {
	if strings.IndexFunc(text, isControl) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if isControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
