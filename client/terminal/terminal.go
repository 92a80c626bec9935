// Package terminal writes text of which others are the authors to a terminal.
//
// Commands write names and texts of which a task, or whoever may write to a
// checkpoint directory, is the author. Written as they are, they could move a
// terminal's cursor over what was said before, set its title, or have it answer on
// standard input. So all that commands write goes through Printable, which lets no
// control character pass; what is meant to be as the task wrote it, or steers the
// terminal on purpose, goes through Raw.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// steers reports whether a terminal does something at a character other than show it:
// ASCII's control characters but line feed and tab, those of Latin-1, and what changes
// the direction of the text around it.
func steers(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return true
	}
	return false
}

// Clean is text without what steers a terminal.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if steers(r) {
			return -1
		}
		return r
	}, s)
}

// Printable gives a writer that drops what steers a terminal. It is for one goroutine
// at a time.
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

// Raw gives the writer that a Printable writes to; of any other, itself.
func Raw(w io.Writer) io.Writer {
	if p, ok := w.(*printableWriter); ok {
		return p.raw
	}
	return w
}

// EscapeJSON writes what steers a terminal by its number in JSON's text.
func EscapeJSON(text string) string {
	if strings.IndexFunc(text, steers) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if steers(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
