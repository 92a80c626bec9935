// Package ui serves the pages of all jobs of a user, running and ended, to a browser on the
// user's own machine: a list, and of each job the pages that its application master serves
// while it runs (package am/web).
//
// A job is opened anew for each request, as a command would: from its application master
// while that answers, and otherwise from what is kept in its directory.
package ui

import (
	"context"
	"net/http"
	"os"

	"holdfast/am/web"
	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// jobsShown bounds the jobs of the list.
const jobsShown = 200

// Handler serves the list of jobs, and the pages of a job at /jobs/ID/.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", web.JobsHandler(listJobs, jobs.StateWords()))
	for name := range web.Assets {
		mux.HandleFunc("GET /jobs/{id}/"+name, web.Asset)
	}
	mux.HandleFunc("GET /jobs/{id}/", showJob)
	return mux
}

func listJobs(ctx context.Context, q web.JobQuery) (web.Listing, error) {
	o := jobs.ListOptions{Everybody: q.Everybody, Text: q.Text, Limit: jobsShown, Steps: true}
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

// showJob serves the pages of a job.
func showJob(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	j, err := jobs.Open(r.Context(), id)
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
	site := web.Site{Status: present{status}, Files: j.Store(), Dir: j.Dir(), Polled: true, Jobs: "../../", Samples: j.Samples}
	if spec, err := j.Spec(r.Context()); err == nil { // another user's cannot be read
		site.Spec = spec
	}
	http.StripPrefix("/jobs/"+id, web.Handler(site)).ServeHTTP(w, r)
}

// fail answers with an error.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch client.ExitCode(err) {
	case client.ExitUsage:
		status = http.StatusNotFound
	case client.ExitUnreachable:
		status = http.StatusServiceUnavailable
	case client.ExitDenied:
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
