package web

import (
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/am/web/text"
	"holdfast/proto"
)

var functions = template.FuncMap{
	"state":    proto.StateWord,
	"clock":    text.Moment,
	"shownURL": proto.ShownURL,
	"stamp":    func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) },
	"value":    text.Value,
	"valueOf":  text.ValueOf,
	"since":    text.Span,
	"bytes":    text.Size,
	"inCheckpoints": func(page string) bool {
		return page == "checkpoint" || page == "tensor" || page == "difference" || page == "change"
	},
	"number":    func(n int64) string { return humanize.Comma(n) },
	"count":     func(n int) string { return humanize.Comma(int64(n)) },
	"rate":      text.Rate,
	"remaining": text.Duration,
	"cores":     func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) },
	"percent":   func(v *float64) string { return strconv.FormatFloat(*v*100, 'f', 0, 64) + "%" },
	"seconds":   func(n int64) string { return text.Duration(text.Milliseconds(n)) },
	"lines":     func(l []string) string { return strings.Join(l, "\n") },
}
