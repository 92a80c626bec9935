package metrics

import (
	"fmt"
	"strings"
)

// Table returns the names of all metrics as a table of Markdown, for the documentation.
func Table() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | |\n|---|---|---|---|\n")
	for _, f := range families {
		kind := "gauge"
		switch {
		case f.histogram != nil:
			kind = "histogram"
		case f.kind == counter:
			kind = "counter"
		}
		var labels []string
		for _, l := range f.labels {
			labels = append(labels, "`"+l+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.name, kind, strings.Join(labels, ", "), f.help)
	}
	return b.String()
}
