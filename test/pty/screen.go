package pty

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// screen is what a terminal shows, as far as our commands need one: it knows the cursor's
// movements, erasing, and the alternate screen; colours it leaves out.
type screen struct {
	columns, rows int
	cells         [][]rune
	row, column   int
	main          *screen // while the alternate screen is shown
}

// newScreen returns a screen to which text was written.
func newScreen(columns, rows int, text string) *screen {
	s := &screen{columns: columns, rows: rows}
	for text != "" {
		text = text[s.take(text):]
	}
	return s
}

// take takes in the first character or control sequence of a text, and returns its length.
func (s *screen) take(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	switch {
	case r == '\n':
		s.row++
	case r == '\r':
		s.column = 0
	case r == '\b':
		s.column = max(0, s.column-1)
	case r == '\t':
		s.column += 8 - s.column%8
	case strings.HasPrefix(text, "\x1b["):
		end := 2
		for end < len(text) && (text[end] < '@' || text[end] > '~') {
			end++
		}
		if end < len(text) {
			s.obey(text[2:end], text[end])
			end++
		}
		return end
	case r >= ' ':
		if s.column >= s.columns {
			s.row, s.column = s.row+1, 0
		}
		s.scroll()
		s.put(r)
	}
	s.scroll()
	return size
}

// scroll drops the first lines where the cursor is below the last.
func (s *screen) scroll() {
	for ; s.row >= s.rows; s.row-- {
		if len(s.cells) > 0 {
			s.cells = s.cells[1:]
		}
	}
}

// line returns a line, which is made if it is missing.
func (s *screen) line(row int) *[]rune {
	for len(s.cells) <= row {
		s.cells = append(s.cells, nil)
	}
	return &s.cells[row]
}

func (s *screen) put(r rune) {
	line := s.line(s.row)
	for len(*line) <= s.column {
		*line = append(*line, ' ')
	}
	(*line)[s.column] = r
	s.column++
}

// obey carries out a control sequence.
func (s *screen) obey(parameters string, command byte) {
	number := func(i, def int) int {
		parts := strings.Split(parameters, ";")
		if i < len(parts) {
			if n, err := strconv.Atoi(parts[i]); err == nil {
				return n
			}
		}
		return def
	}
	switch command {
	case 'A':
		s.row = max(0, s.row-number(0, 1))
	case 'C':
		s.column = min(s.column+number(0, 1), s.columns-1)
	case 'D':
		s.column = max(0, s.column-number(0, 1))
	case 'H':
		s.row, s.column = min(number(0, 1)-1, s.rows-1), min(number(1, 1)-1, s.columns-1)
	case 'K':
		if line := s.line(s.row); len(*line) > s.column {
			*line = (*line)[:s.column]
		}
	case 'J':
		if line := s.line(s.row); len(*line) > s.column {
			*line = (*line)[:s.column]
		}
		s.cells = s.cells[:s.row+1]
	case 'h':
		if parameters == "?1049" && s.main == nil {
			kept := *s
			*s = screen{columns: s.columns, rows: s.rows, main: &kept}
		}
	case 'l':
		if parameters == "?1049" && s.main != nil {
			*s = *s.main
		}
	}
}

// lines returns what the screen shows, without blanks at the ends of lines and below the last.
func (s *screen) lines() []string {
	var all []string
	for _, line := range s.cells {
		all = append(all, strings.TrimRight(string(line), " "))
	}
	for len(all) > 0 && all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}
