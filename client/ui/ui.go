// Package ui serves the pages of all jobs of a user, running and ended, to a browser on the
// user's own machine: a list, and of each job the pages that its application master serves
// while it runs (package am/web).
//
// A job is opened anew for each request, as a command would: from its application master
// while that answers, and otherwise from what is kept in its directory.
package ui

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"sync"

	"github.com/sirupsen/logrus"

	"holdfast/am/web"
	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/hdfsckpt/inspect"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// jobsShown bounds the jobs of the list.
const jobsShown = 200

// Options select what is shown besides the user's jobs.
type Options struct {
	Checkpoints []string // URIs or local paths of checkpoint directories, or jobs that have some
	History     []string // URIs or local paths of directories with directories of ended jobs
}

// UI serves the pages. The caller closes it.
type UI struct {
	mux         *http.ServeMux
	history     []string // of Options
	memory      jobs.Memory
	checkpoints *inspect.Browser // of Options; nil if there are none
	changes     *web.Changes     // HDFS says what the user may change

	mu sync.Mutex
	// browsers have the checkpoint directories of each job that was asked for. An idle one
	// holds no connection.
	browsers map[string]*inspect.Browser
}

// New returns the pages. It is a usage error if a directory of Options does not exist.
func New(ctx context.Context, o Options) (*UI, error) {
	for _, uri := range o.History {
		s, err := cluster.OpenDirectory(ctx, uri)
		if err != nil {
			return nil, err
		}
		_ = s.Close() // it was only looked for
	}
	u := &UI{mux: http.NewServeMux(), history: o.History, browsers: map[string]*inspect.Browser{}}
	u.changes = web.NewChanges(func(*http.Request) (string, error) { return "the user of yarn-submit ui", nil }, false, logrus.NewEntry(logrus.StandardLogger()))
	site := web.JobsSite{List: u.list, States: jobs.StateWords()}
	if len(o.Checkpoints) > 0 {
		dirs, err := directories(ctx, o.Checkpoints)
		if err != nil {
			return nil, err
		}
		site.Checkpoints = "checkpoints/"
		u.checkpoints = inspect.NewBrowser(dirs, cluster.OpenDirectory)
		u.mux.Handle("/checkpoints/", http.StripPrefix("/checkpoints", web.Handler(web.Site{Checkpoints: u.checkpoints, Changes: u.changes, Polled: true, Jobs: "../"})))
	}
	u.mux.Handle("/", web.JobsHandler(site))
	for name := range web.Assets {
		u.mux.HandleFunc("GET /jobs/{id}/"+name, web.Asset)
	}
	u.mux.HandleFunc("/jobs/{id}/", u.job)
	return u, nil
}

// directories returns the checkpoint directories that a user names.
func directories(ctx context.Context, refs []string) ([]inspect.Directory, error) {
	var list []inspect.Directory
	for _, ref := range refs {
		opened, err := checkpoints.Directories(ctx, ref, jobs.Find)
		if err != nil {
			return nil, err
		}
		for _, d := range opened {
			list = append(list, inspect.Directory{Path: d.Path, URI: d.Store.URI()})
			_ = d.Store.Close() // it was only looked for
		}
	}
	return list, nil
}

// ServeHTTP serves the list of jobs, and the pages of a job at /jobs/ID/.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.mux.ServeHTTP(w, r) }

// Close closes all connections. No request may be served any longer.
func (u *UI) Close() {
	u.checkpoints.Close()
	u.mu.Lock() // requests that were not waited for may still go on
	defer u.mu.Unlock()
	for _, b := range u.browsers {
		b.Close()
	}
}

// browser returns the browser of a job's checkpoint directories; nil if it has none.
func (u *UI) browser(id string, spec *proto.JobSpec) *inspect.Browser {
	u.mu.Lock()
	defer u.mu.Unlock()
	b, known := u.browsers[id]
	if !known {
		b = web.Checkpoints(spec, cluster.OpenDirectory)
		u.browsers[id] = b
	}
	return b
}

// list lists jobs for the page.
func (u *UI) list(ctx context.Context, q web.JobQuery) (web.Listing, error) {
	o := jobs.ListOptions{Everybody: q.Everybody, Text: q.Text, Limit: jobsShown, Steps: true, Kept: true, History: u.history, Memory: &u.memory}
	if q.State != "" {
		o.States = []string{q.State}
	}
	var l web.Listing
	var err error
	l.Jobs, l.Omitted, err = jobs.List(ctx, o)
	if os.Getenv(conf.EnvDir) == "" {
		l.Note = "These are the jobs on this machine: for those on a cluster, start yarn-submit ui with " + conf.EnvDir + " set."
	}
	return l, err
}

// open opens a job: where it is in a directory of ended jobs there, since that can be read where
// the directory of another user's job cannot.
func (u *UI) open(ctx context.Context, id string) (*jobs.Job, error) {
	for _, uri := range u.history {
		if j, err := jobs.OpenHistory(ctx, uri, id); !errors.Is(err, fs.ErrNotExist) {
			return j, err
		}
	}
	return jobs.Open(ctx, id)
}

// job serves the pages of a job.
func (u *UI) job(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	j, err := u.open(r.Context(), id)
	if err != nil {
		fail(w, r, err)
		return
	}
	defer j.Close()
	status, err := j.Status(r.Context())
	if err != nil {
		fail(w, r, err)
		return
	}
	site := web.Site{Status: present{status}, Files: j.Store(), Dir: j.Dir(), Polled: true, Jobs: "../../"}
	if spec, err := j.Spec(r.Context()); err == nil {
		site.Spec, site.Checkpoints, site.Changes, site.Samples = spec, u.browser(id, spec), u.changes, j.Samples
	} else if errors.Is(err, fs.ErrPermission) && !status.State.Done() && status.TrackingUrl != "" {
		status.Why += "; to those whom --view-acl names, it shows them at " + status.TrackingUrl
	}
	http.StripPrefix("/jobs/"+id, web.Handler(site)).ServeHTTP(w, r)
}

// fail answers with an error.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch code := client.ExitCode(err); {
	case code == client.ExitUsage, errors.Is(err, fs.ErrNotExist):
		status = http.StatusNotFound
	case code == client.ExitUnreachable:
		status = http.StatusServiceUnavailable
	case code == client.ExitDenied:
		status = http.StatusForbidden
	}
	web.Fail(w, r, status, err.Error())
}

// present is a job's status at the time of a request.
type present struct{ status *proto.JobStatus }

var _ web.Source = present{}

// never is not closed: a page asks anew in place of waiting for a change.
var never = make(chan struct{})

// Snapshot implements web.Source.
func (p present) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	if p.status.State.Done() {
		return p.status, nil
	}
	return p.status, never
}
