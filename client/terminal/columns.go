package terminal

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Columns returns how many columns of a terminal a text in one line takes: those of East Asian scripts
// and pictures take two each, and marks on other characters none.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300: // the first mark
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut shortens a text in one line to a number of columns; its last character then is "…".
func Cut(s string, columns int) string {
	switch {
	case Columns(s) <= columns:
		return s
	case columns < 1:
		return ""
	}
	return first(s, columns-1) + "…"
}

// first returns as much of the beginning of a text as fits so many columns.
func first(s string, columns int) string {
	for i, r := range s {
		if columns -= columnsOf(r); columns < 0 {
			return s[:i]
		}
	}
	return s
}

// Line returns a text as one line, of which Columns knows the width: line feeds and tabs become spaces,
// and other control characters are dropped.
func Line(s string) string { return Clean(inLine.Replace(s)) }

var inLine = strings.NewReplacer("\n", " ", "\t", " ")
