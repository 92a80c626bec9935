package terminal

import (
	"cmp"
	"io"
	"slices"
	"strings"
)

// Table is text in columns. In a terminal it is made to fit: columns named in Flexible
// are cut, the longest text first; where that does not do, those in Optional are left out, the
// first first; and where that does not, lines are cut.
type Table struct {
	Flexible []string // titles
	Optional []string // titles
	// Least is how many characters flexible columns keep at least, by their titles; others keep
	// leastFlexible.
	Least  map[string]int
	titles []string
	rows   [][]string
	below  map[int]string // under the row of that number
	most   int            // lines of each of these
}

// gap separates columns.
const gap = 2

// leastFlexible is what a flexible column keeps at least unless the table says otherwise.
const leastFlexible = 8

// NewTable returns a table with titles and without rows.
func NewTable(titles ...string) *Table { return &Table{titles: titles, rows: [][]string{titles}} }

// Add adds a row with a text for each column, as by Line.
func (t *Table) Add(texts ...string) {
	for i, text := range texts {
		texts[i] = Line(text)
	}
	t.rows = append(t.rows, texts)
}

// AddBelow adds a text below the last row, in at most so many lines, which are indented.
func (t *Table) AddBelow(text string, lines int) {
	t.most = lines
	if t.below == nil {
		t.below = map[int]string{}
	}
	t.below[len(t.rows)-1] = Line(text)
}

// Write writes the table. width is that of the terminal; 0: nothing is cut.
func (t *Table) Write(w io.Writer, width int) error {
	widths := make([]int, len(t.titles))
	for _, row := range t.rows {
		for i, text := range row {
			widths[i] = max(widths[i], Columns(text))
		}
	}
	if width > 0 {
		t.fit(widths, width)
	}
	var b strings.Builder
	write := func(line string) {
		if line = strings.TrimRight(line, " "); width > 0 {
			line = Cut(line, width)
		}
		b.WriteString(line + "\n")
	}
	for n, row := range t.rows {
		var line strings.Builder
		for i, text := range row {
			if widths[i] == leftOut {
				continue
			}
			cell := Cut(text, widths[i])
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+gap))
			}
		}
		write(line.String())
		for _, line := range t.linesBelow(n, width) {
			write("  " + line)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// linesBelow returns the lines below a row.
func (t *Table) linesBelow(row, width int) []string {
	text, is := t.below[row]
	if !is {
		return nil
	}
	var lines []string
	for room := width - 2; width > 0 && len(lines) < t.most-1 && Columns(text) > room; {
		at := strings.LastIndexByte(first(text, max(room+1, 1)), ' ')
		if at <= 0 {
			break
		}
		lines, text = append(lines, text[:at]), text[at+1:]
	}
	return append(lines, text)
}

// leftOut is the width of a column that is left out.
const leftOut = -1

// fit makes flexible columns narrower and leaves optional ones out, until a line has at most
// width characters.
func (t *Table) fit(widths []int, width int) {
	for optional := t.Optional; ; optional = optional[1:] {
		// Where a column is left out, others may need no cut.
		narrowed := slices.Clone(widths)
		if t.shrink(narrowed, width) || len(optional) == 0 {
			copy(widths, narrowed)
			return
		}
		if i := slices.Index(t.titles, optional[0]); i >= 0 {
			widths[i] = leftOut
		}
	}
}

// shrink makes flexible columns narrower until a line fits, one character after another,
// the widest first. It reports whether a line fits.
func (t *Table) shrink(widths []int, width int) bool {
	total := -gap
	for _, n := range widths {
		if n != leftOut {
			total += n + gap
		}
	}
	for ; total > width; total-- {
		widest := -1
		for i, title := range t.titles {
			if slices.Contains(t.Flexible, title) && widths[i] > max(cmp.Or(t.Least[title], leastFlexible), len(title)) && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}
