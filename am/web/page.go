// Package web is a job's tracking page: what `yarn-submit status` says, in a
// browser, through the ResourceManager's proxy. It only shows; nothing can be
// changed from it.
package web

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/proto"
)

// Source returns the job's status; am/status.Store is one.
type Source interface {
	Snapshot() (*proto.JobStatus, <-chan struct{})
}

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"state":   proto.StateWord,
	"earlier": earlier,
	"last":    func(n int, all []*proto.JobEvent) []*proto.JobEvent { return all[max(0, len(all)-n):] },
	"clock":   func(ms int64) string { return time.UnixMilli(ms).Format("15:04:05.000") },
	"since": func(from, to int64) string {
		end := time.Now()
		if to != 0 {
			end = time.UnixMilli(to)
		}
		return end.Sub(time.UnixMilli(from)).Round(time.Second).String()
	},
	"bytes": func(n int64) string {
		if n == 0 {
			return ""
		}
		return humanize.IBytes(uint64(n))
	},
	"number": func(attempt int32) string {
		if attempt < 0 {
			return ""
		}
		return humanize.Comma(int64(attempt))
	},
}).Parse(pageText))

// earlier reports whether a task's reason and last lines concern an attempt before the
// present one, and which.
func earlier(s *proto.JobStatus, k *proto.TaskStatus) struct {
	Is bool
	Of int32
} {
	of, is := proto.EarlierReason(s, k)
	return struct {
		Is bool
		Of int32
	}{k.Why != "" && is, of}
}

// Handler serves the page at / and the same as JSON at /status.json.
func Handler(s Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := s.Snapshot()
		var text bytes.Buffer
		if err := page.Execute(&text, status); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = w.Write(text.Bytes()) // the reader went away
	})
	mux.HandleFunc("GET /status.json", func(w http.ResponseWriter, _ *http.Request) {
		status, _ := s.Snapshot()
		text, err := proto.JSON(status)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(text) // the reader went away
	})
	return mux
}
