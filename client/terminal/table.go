package terminal

import (
	"io"
	"strings"
)

// Table is text in columns. In a terminal it is made to fit: columns named in Flexible
// are cut, the longest text first.
type Table struct {
	Flexible []string // titles
	titles   []string
	rows     [][]string
}

// gap separates columns.
const gap = 2

// leastFlexible is what a flexible column keeps at least.
const leastFlexible = 8

// NewTable returns a table with titles and without rows.
func NewTable(titles ...string) *Table { return &Table{titles: titles, rows: [][]string{titles}} }

// Add adds a row with a text for each column. Line feeds become spaces, and other control
// characters are dropped.
func (t *Table) Add(texts ...string) {
	for i, text := range texts {
		texts[i] = Clean(strings.ReplaceAll(text, "\n", " "))
	}
	t.rows = append(t.rows, texts)
}

// Write writes the table. width is that of the terminal; 0: nothing is cut.
func (t *Table) Write(w io.Writer, width int) error {
	widths := make([]int, len(t.titles))
	for _, row := range t.rows {
		for i, text := range row {
			widths[i] = max(widths[i], len([]rune(text)))
		}
	}
	if width > 0 {
		t.shrink(widths, width)
	}
	var b strings.Builder
	for _, row := range t.rows {
		var line strings.Builder
		for i, text := range row {
			cell := Cut(text, widths[i])
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+gap))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shrink makes flexible columns narrower until a line fits, one character after another,
// the widest first.
func (t *Table) shrink(widths []int, width int) {
	total := gap * (len(widths) - 1)
	for _, n := range widths {
		total += n
	}
	for ; total > width; total-- {
		widest := -1
		for i, title := range t.titles {
			for _, f := range t.Flexible {
				if title == f && widths[i] > max(leastFlexible, len(title)) && (widest < 0 || widths[i] > widths[widest]) {
					widest = i
				}
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Cut shortens a text to a number of characters, of which the last then is "…".
func Cut(s string, width int) string {
	r := []rune(s)
	switch {
	case len(r) <= width:
		return s
	case width < 1:
		return ""
	}
	return string(r[:width-1]) + "…"
}
