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
	"errors"
	"html/template"
	"net/http"
	"path"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Source returns the job's status; am/status.Store is one.
type Source interface {
	// Snapshot returns a copy of the status, and a channel that is closed at the next
	// change; nil if there will be none.
	Snapshot() (*proto.JobStatus, <-chan struct{})
}

// Site is what the pages of a job are made of.
type Site struct {
	Status Source
	Spec   *proto.JobSpec
	// Files has the job's directory, at Dir.
	Files store.Store
	Dir   string
	// Polled means that pages ask for changes every few seconds in place of waiting for them
	// on a connection of their own: where requests come through a proxy that holds responses
	// back until they are complete, as YARN's does, and spends a thread on each; and where
	// one host has the pages of many jobs, since browsers open few connections to a host.
	Polled bool
	// Jobs is the address of a list of jobs that has this one, relative to the job's page;
	// "" if there is none.
	Jobs string
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
	mux.Handle("GET /{$}", s.page(s.job))
	mux.Handle("GET /task", s.page(s.task))
	mux.Handle("GET /configuration", s.page(s.configuration))
	mux.HandleFunc("GET /log", s.log)
	mux.HandleFunc("GET /changes", s.changes)
	mux.HandleFunc("GET /status.json", s.statusJSON)
	for name := range Assets {
		mux.HandleFunc("GET /"+name, Asset)
	}
	return Secured(mux)
}

// Assets are the files that pages refer to, with their types. Those of a job's page are
// beside it.
var Assets = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

// Asset answers with the file of Assets that a path names last.
func Asset(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", Assets[name])
	_, _ = w.Write(text) // the reader went away
}

// policy is the Content-Security-Policy of every answer.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// Secured sets the headers that every answer has.
func Secured(next http.Handler) http.Handler {
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
	Page string // of the navigation
	// Updates is how the script finds out about changes: "events", "poll", or "" where there
	// are none.
	Updates string
	PaceMs  int64 // between two updates
	Now     time.Time
	Jobs    string
	View    any // what the page shows of its own
}

// Title is that of the browser's window.
func (f frame) Title() string { return f.Name + " – " + proto.StateWord(f.State) }

// view makes a page of its own: the name of its template, and what that shows.
type view func(r *http.Request, status *proto.JobStatus) (name string, content any, err error)

// errNotFound is returned by views for what the job does not have.
var errNotFound = errors.New("the job has no such thing")

var templates = template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.html"))

// page returns a handler that shows a view.
func (s *server) page(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		status, changed := s.Status.Snapshot()
		name, content, err := v(r, status)
		if errors.Is(err, errNotFound) {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		var text bytes.Buffer
		if err == nil {
			f := frame{JobStatus: status, Page: name, Updates: s.updates(status, changed), PaceMs: s.pace.get().Milliseconds(), Now: begin, Jobs: s.Jobs, View: content}
			err = templates.ExecuteTemplate(&text, name, f)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.pace.took(time.Since(begin))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text.Bytes()) // the reader went away
	})
}

func (s *server) updates(status *proto.JobStatus, changed <-chan struct{}) string {
	switch {
	case changed == nil || status.State.Done():
		return ""
	case s.Polled:
		return "poll"
	}
	return "events"
}

func (s *server) statusJSON(w http.ResponseWriter, _ *http.Request) {
	status, _ := s.Status.Snapshot()
	text, err := proto.JSON(status)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // the reader went away
}
