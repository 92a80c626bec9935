package terminal

import (
	"regexp"
	"strings"
)

// sequences are what a terminal takes for commands (ECMA-48): those that end in m set
// colours, others move the cursor, erase or ask.
var sequences = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?`)

// colour matches the sequences that only set how text looks.
var colour = regexp.MustCompile(`^\x1b\[[0-9;:]*m$`)

// reset ends what a line has set.
const reset = "\x1b[0m"

// Shown returns a line of a program's output as a terminal should show it: what a progress
// bar wrote last, without commands to the terminal other than, if colours are wanted,
// those that set them. It is valid UTF-8, whatever the line is.
func Shown(line string, colours bool) string {
	line = strings.TrimRight(line, "\r")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	if strings.IndexFunc(line, isControl) < 0 {
		// A byte that is no character is a command to terminals with characters of eight bits.
		return strings.ToValidUTF8(line, "\uFFFD")
	}
	coloured := false
	var b strings.Builder
	at := 0
	for _, m := range sequences.FindAllStringIndex(line, -1) {
		b.WriteString(Clean(line[at:m[0]]))
		if s := line[m[0]:m[1]]; colours && colour.MatchString(s) {
			b.WriteString(s)
			coloured = true
		}
		at = m[1]
	}
	b.WriteString(Clean(line[at:]))
	if coloured {
		b.WriteString(reset)
	}
	return b.String()
}

// palette are colours that can be read on light and on dark ground.
var palette = []string{"36", "33", "35", "32", "34", "31"}

// Coloured returns text in one of a few colours, the same for the same n.
func Coloured(text string, n int) string {
	return "\x1b[" + palette[n%len(palette)] + "m" + text + reset
}
