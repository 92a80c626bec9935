// Package web is a job's pages: what `yarn-submit status` says and more, in a browser,
// through the ResourceManager's proxy or on this machine. They only show; nothing can be
// changed from them.
//
// Every page is a file of the one directory that Handler serves, and every reference is
// relative, so the pages work below any prefix. They need no script: the one that they
// have replaces the live parts of a page when the job has changed, and without it a
// browser loads the page anew every few seconds. No request leaves the pages' host, and
// the Content-Security-Policy allows nothing inline.
package web

import (
	"bytes"
	"embed"
	"html/template"
	"net/http"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Source returns the job's status; am/status.Store is one.
type Source interface {
	// Snapshot returns a copy of the status, and a channel that is closed at the next
	// change; nil if there will be none.
	Snapshot() (*proto.JobStatus, <-chan struct{})
}

// Site is what the pages of a job are made of, or with neither Status nor Spec those of
// checkpoint directories alone.
type Site struct {
	Status Source
	Spec   *proto.JobSpec
	// Files has the job's directory, at Dir.
	Files store.Store
	Dir   string
	// Checkpoints has the checkpoint directories; nil if there are none to show.
	Checkpoints *inspect.Browser
	// Proxied means that requests come through a proxy that holds responses back until
	// they are complete, as YARN's does, and spends a thread on each: pages ask for changes
	// every few seconds in place of waiting for them.
	Proxied bool
	// Metrics serves metrics; nil: there are none.
	Metrics http.Handler
}

//go:embed assets
var assets embed.FS

// server serves a Site.
type server struct {
	Site
	pace    pace
	streams chan struct{} // has an element for each open stream of changes
}

// Handler serves the pages of a job, and the same as JSON.
func Handler(site Site) http.Handler {
	s := &server{Site: site, streams: make(chan struct{}, maxStreams)}
	mux := http.NewServeMux()
	if s.Status != nil {
		mux.Handle("GET /{$}", s.page(s.job))
		mux.Handle("GET /task", s.page(s.task))
		mux.Handle("GET /configuration", s.page(s.configuration))
		mux.HandleFunc("GET /log", s.log)
		mux.HandleFunc("GET /changes", s.changes)
		mux.HandleFunc("GET /status.json", s.statusJSON)
	} else {
		mux.Handle("GET /{$}", s.page(s.checkpoints))
	}
	if s.Checkpoints != nil {
		for address, v := range map[string]view{"checkpoints": s.checkpoints, "checkpoint": s.checkpoint, "tensor": s.tensor, "difference": s.difference} {
			mux.Handle("GET /"+address, s.page(v))
			mux.Handle("GET /"+address+".json", s.json(v))
		}
	}
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.Metrics)
	}
	for name, kind := range map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			text, err := assets.ReadFile("assets/" + name)
			if err != nil {
				fail(w, r, http.StatusInternalServerError, err.Error())
				return
			}
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text) // the reader went away
		})
	}
	return secured(unknown(mux))
}

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// secured sets the headers that every answer has.
func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		// The address of a local job's page has the key to it.
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// frame is what every page has.
type frame struct {
	*proto.JobStatus
	HasJob, HasCheckpoints bool
	Page                   string // of the navigation
	// Updates is how the script finds out about changes: "events", "poll", or "" where there
	// are none.
	Updates string
	PaceMs  int64 // between two updates
	Now     time.Time
	JSON    string // the address of the same as JSON
	View    any    // what the page shows of its own
}

// view makes a page of its own: the name of its template, and what that shows.
type view func(r *http.Request, status *proto.JobStatus) (name string, content any, err error)

// framed is a view's content that decides about its page itself.
type framed interface{ frame(*frame) }

// answer is a view's content that can be asked for as JSON, too: with the HTTP status, or an
// error.
type answer interface{ json() (status int, v any) }

var templates = template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.html"))

// snapshot returns the job's status; one without tasks where there is no job.
func (s *server) snapshot() (*proto.JobStatus, <-chan struct{}) {
	if s.Status == nil {
		return &proto.JobStatus{Name: "Checkpoints"}, nil
	}
	return s.Status.Snapshot()
}

// page returns a handler that shows a view.
func (s *server) page(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		status, changed := s.snapshot()
		name, content, err := v(r, status)
		if err != nil {
			failWith(w, r, err)
			return
		}
		f := frame{
			JobStatus: status, HasJob: s.Status != nil, HasCheckpoints: s.Checkpoints != nil, Page: name, JSON: "status.json",
			Updates: s.updates(status, changed), PaceMs: s.pace.get().Milliseconds(), Now: begin, View: content,
		}
		if c, ok := content.(framed); ok {
			c.frame(&f)
		}
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, name, f); err != nil {
			failWith(w, r, err)
			return
		}
		s.pace.took(time.Since(begin))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text.Bytes()) // the reader went away
	})
}

// json returns a handler that answers with a view as JSON.
func (s *server) json(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := s.snapshot()
		_, content, err := v(r, status)
		if err != nil {
			failWith(w, r, err)
			return
		}
		code, value := content.(answer).json()
		if err, failed := value.(error); failed {
			failWith(w, r, err)
			return
		}
		answerJSON(w, r, code, value)
	})
}

func (s *server) updates(status *proto.JobStatus, changed <-chan struct{}) string {
	switch {
	case changed == nil || status.State.Done():
		return ""
	case s.Proxied:
		return "poll"
	}
	return "events"
}

func (s *server) statusJSON(w http.ResponseWriter, r *http.Request) {
	status, _ := s.Status.Snapshot()
	text, err := proto.JSON(status)
	if err != nil {
		failWith(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, text)
}
