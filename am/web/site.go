// Package web is a job's pages: what `yarn-submit status` says and more, in a browser,
// through the ResourceManager's proxy or on this machine. They show; what can be changed from
// them are checkpoints, by those who may (Changes).
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
	"path"
	"strings"
	"time"

	"holdfast/am/web/relay"
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
	// Polled means that pages ask for changes every few seconds in place of waiting for them
	// on a connection of their own: where requests come through a proxy that holds responses
	// back until they are complete, as YARN's does, and spends a thread on each; and where
	// one host has the pages of many jobs, since browsers open few connections to a host.
	Polled bool
	// Jobs is the address of a list of jobs that has this one, relative to the job's page;
	// "" if there is none.
	Jobs string
	// Checkpoints has the checkpoint directories; nil if there are none to show.
	Checkpoints *inspect.Browser
	// Changes lets some change checkpoints; nil: the pages only show them.
	Changes *Changes
	// Metrics serves metrics; nil: there are none.
	Metrics http.Handler
	// Relay means that pages which tasks serve by themselves are below web/TASK/, too (package
	// relay); otherwise they are at their nodes only.
	Relay bool
	// Samples has the job's measurements; nil: there are none.
	Samples SampleSource
}

//go:embed assets
var assets embed.FS

// server serves a Site.
type server struct {
	Site
	pace    pace
	recent  recent        // pages that are shared
	streams chan struct{} // has an element for each open stream of changes
	search  turns         // of those who search in logs
}

// Handler serves the pages of a job, and the same as JSON.
func Handler(site Site) http.Handler {
	s := &server{Site: site, streams: make(chan struct{}, maxStreams), search: make(turns, 1)}
	mux := http.NewServeMux()
	pages := make(turns, maxMade)
	if s.Status != nil {
		mux.Handle("GET /{$}", s.shared(pages, s.job))
		mux.Handle("GET /task", s.page(make(turns, maxMade), s.task)) // which waits for a log
		mux.Handle("GET /configuration", s.page(pages, s.configuration))
		mux.Handle("GET /log", make(turns, maxLogs).handler(s.log))
		if !s.Polled {
			mux.HandleFunc("GET /changes", s.changes)
		}
		mux.Handle("GET /status.json", make(turns, maxMade).handler(s.statusJSON))
	} else {
		mux.Handle("GET /{$}", s.briefPage(bounded(s.checkpoints)))
	}
	if s.Samples != nil {
		one := make(turns, 1)
		mux.Handle("GET /plots", s.shared(pages, s.plots))
		mux.Handle("GET /samples.json", one.handler(s.samplesJSON))
		mux.Handle("GET /samples.csv", one.handler(s.samplesCSV))
	}
	if s.Checkpoints != nil {
		for address, v := range map[string]view{"checkpoints": s.checkpoints, "checkpoint": s.checkpoint, "tensor": s.tensor, "difference": s.difference} {
			v = bounded(v)
			mux.Handle("GET /"+address, s.briefPage(v))
			mux.Handle("GET /"+address+".json", s.json(v))
		}
		for _, action := range []string{"prune", "rollback"} {
			v := bounded(s.plan(action))
			mux.Handle("GET /"+action, s.briefPage(v))
			mux.Handle("GET /"+action+".json", s.json(v))
			if s.Changes != nil {
				mux.Handle("POST /"+action, s.change(action))
				mux.Handle("PUT /"+action, s.change(action))
			}
		}
	}
	if s.Metrics != nil {
		mux.Handle("GET /metrics", make(turns, 1).handler(s.Metrics.ServeHTTP))
	}
	for name := range Assets {
		mux.HandleFunc("GET /"+name, Asset)
	}
	all := unknown(mux)
	if s.Status != nil && s.Relay {
		all = beside(relay.New(s.pageOf), all)
	}
	return Secured(all)
}

// beside passes requests for the pages of tasks on to tasks, as they are: the paths below a task
// are its own, and a mux would have browsers ask for cleaner ones.
func beside(tasks, pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/web/") {
			tasks.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// pageOf returns the host:port at which a task serves a page; "" if it serves none.
func (s *server) pageOf(task string) string {
	status, _ := s.Status.Snapshot()
	if t := taskOf(status, task); t != nil && t.WebUrl != "" {
		return t.RealAddress
	}
	return ""
}

// Assets are the files that pages refer to, with their types. Those of a job's page are
// beside it.
var Assets = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

// Asset answers with the file of Assets that a path names last.
func Asset(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	text, err := assets.ReadFile("assets/" + name)
	if err != nil {
		Fail(w, r, http.StatusInternalServerError, err.Error())
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
		// The address of a local job's page has the key to it, and must not reach other sites.
		// To its own, a browser says where a form was sent from.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// frame is what every page has.
type frame struct {
	*proto.JobStatus
	HasJob, HasSpec, HasCheckpoints, HasPlots bool
	Page                                      string // of the navigation
	// Updates is how the script finds out about changes: "events", "poll", or "" where there
	// are none.
	Updates string
	PaceMs  int64 // between two updates
	Now     time.Time
	Jobs    string
	JSON    string // the address of the same as JSON
	// Relayed reports whether pages of tasks are reached through those of the job, which are at
	// RelayedAt, relative to this one or at the ResourceManager's proxy.
	Relayed   bool
	RelayedAt string
	View      any // what the page shows of its own
}

// TaskPage returns the address of the page that a task serves by itself: through the pages of
// the job where these pass requests on, so that whoever may see them reaches it.
func (f frame) TaskPage(t *proto.TaskStatus) string {
	if !f.Relayed {
		return t.WebUrl
	}
	return f.RelayedAt + relay.Address(t.Task, strings.TrimPrefix(t.WebUrl, "http://"+t.RealAddress))
}

// Title is that of the browser's window.
func (f frame) Title() string {
	if !f.HasJob {
		return f.Name
	}
	return f.Name + " – " + proto.StateWord(f.State)
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

// brief is snapshot without what grows with the job. Checkpoints may be waited for long, and by many
// at a time.
func (s *server) brief() (*proto.JobStatus, <-chan struct{}) {
	all, changed := s.snapshot()
	return &proto.JobStatus{
		Id: all.Id, Name: all.Name, User: all.User, Framework: all.Framework, State: all.State, Why: all.Why, StartedUnixMs: all.StartedUnixMs, EndedUnixMs: all.EndedUnixMs,
		Generation: all.Generation, TrackingUrl: all.TrackingUrl,
	}, changed
}

// page returns a handler that shows a view, which it makes when its turn has come.
func (s *server) page(t turns, v view) http.Handler {
	return serve(func(r *http.Request) ([]byte, error) {
		over, err := t.wait(r.Context())
		if err != nil {
			return nil, err
		}
		defer over()
		return s.makePage(v, s.snapshot, r)
	})
}

// briefPage returns a handler that shows a view which is given what brief returns.
func (s *server) briefPage(v view) http.Handler {
	return serve(func(r *http.Request) ([]byte, error) { return s.makePage(v, s.brief, r) })
}

// serve returns a handler that answers with the page that f returns.
func serve(f func(*http.Request) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := f(r)
		if err != nil {
			failWith(w, r, err)
			return
		}
		writePage(w, http.StatusOK, text)
	})
}

// makePage makes the page of a view of a status.
func (s *server) makePage(v view, of func() (*proto.JobStatus, <-chan struct{}), r *http.Request) ([]byte, error) {
	begin := time.Now()
	status, changed := of()
	name, content, err := v(r, status)
	if err != nil {
		return nil, err
	}
	return s.render(begin, status, changed, name, content)
}

// render makes the page of a view's content, which was begun at a time.
func (s *server) render(begin time.Time, status *proto.JobStatus, changed <-chan struct{}, name string, content any) ([]byte, error) {
	f := frame{
		JobStatus: status, HasJob: s.Status != nil, HasSpec: s.Spec != nil, HasCheckpoints: s.Checkpoints != nil, HasPlots: s.Samples != nil, Page: name, JSON: "status.json", Relayed: s.Relay,
		Updates: s.updates(status, changed), PaceMs: s.pace.get().Milliseconds(), Now: begin, Jobs: s.Jobs, View: content,
	}
	// The address of a local job's own page has the key to it.
	if !s.Relay && s.Spec != nil && !s.Spec.Local && status.TrackingUrl != "" {
		f.Relayed, f.RelayedAt = true, strings.TrimSuffix(status.TrackingUrl, "/")+"/"
	}
	if c, ok := content.(framed); ok {
		c.frame(&f)
	}
	var text bytes.Buffer
	if err := templates.ExecuteTemplate(&text, name, f); err != nil {
		return nil, err
	}
	s.pace.took(time.Since(begin))
	return text.Bytes(), nil
}

func writePage(w http.ResponseWriter, code int, text []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(text) // the reader went away
}

// json returns a handler that answers with a view as JSON, which is given what brief returns.
func (s *server) json(v view) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := s.brief()
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
	case s.Polled:
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
