package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
)

// JobQuery selects jobs, by the parameters of the page's address.
type JobQuery struct {
	Text      string // in the id, the name or the user's name
	State     string // word; "": any
	Everybody bool   // also jobs of other users
}

// Listing is a list of jobs, the newest first.
type Listing struct {
	Jobs    []*proto.JobSummary
	Omitted int    // older jobs that match
	Note    string // what the list does not have, and why; "": nothing
}

// List returns the jobs that a query selects. With an error, the listing has those that could
// be found.
type List func(ctx context.Context, q JobQuery) (Listing, error)

// JobsSite is what the page with a list of jobs is made of.
type JobsSite struct {
	List   List
	States []string // the words of states to choose from
	// Checkpoints is the address of pages of checkpoint directories; "" if there are none.
	Checkpoints string
}

// jobsPage is what the page with the list of jobs shows.
type jobsPage struct {
	JobsSite
	Listing
	Query   JobQuery
	Error   string
	Updates string
	PaceMs  int64
}

func (jobsPage) Title() string { return "Jobs" }

// Rows returns the jobs with what the page says of them besides.
func (p jobsPage) Rows() []jobRow {
	var rows []jobRow
	for _, j := range p.Jobs {
		note, _, _ := strings.Cut(j.Why, "\n")
		rows = append(rows, jobRow{j, note})
	}
	return rows
}

type jobRow struct {
	*proto.JobSummary
	Note string
}

// JobsHandler serves the page with a list of jobs, and the same as JSON. It links to the
// page of each at jobs/ID/.
func JobsHandler(site JobsSite) http.Handler {
	var p pace
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		page := jobsPage{JobsSite: site, Query: parseJobQuery(r), Updates: "poll"}
		var err error
		if page.Listing, err = site.List(r.Context(), page.Query); err != nil {
			page.Error = err.Error()
		}
		page.PaceMs = p.get().Milliseconds()
		var text bytes.Buffer
		if err := templates.ExecuteTemplate(&text, "jobs", page); err != nil {
			Fail(w, r, http.StatusInternalServerError, err.Error())
			return
		}
		p.took(time.Since(begin))
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(text.Bytes()) // the reader went away
	})
	mux.HandleFunc("GET /jobs.json", func(w http.ResponseWriter, r *http.Request) {
		q := parseJobQuery(r)
		if q.State != "" && !slices.Contains(site.States, q.State) {
			failWith(w, r, badParameter{fmt.Sprintf("state=%s: write one of %s", q.State, strings.Join(site.States, ", "))})
			return
		}
		listing, err := site.List(r.Context(), q)
		var text []byte
		if err == nil {
			text, err = proto.JSON(&proto.JobList{Jobs: listing.Jobs})
		}
		switch {
		case errors.Is(err, fs.ErrPermission):
			Fail(w, r, http.StatusForbidden, err.Error())
		case err != nil:
			Fail(w, r, http.StatusServiceUnavailable, err.Error())
		default:
			writeJSON(w, http.StatusOK, text)
		}
	})
	for name := range Assets {
		mux.HandleFunc("GET /"+name, Asset)
	}
	return Secured(unknown(mux))
}

func parseJobQuery(r *http.Request) JobQuery {
	p := r.URL.Query()
	return JobQuery{Text: p.Get("q"), State: p.Get("state"), Everybody: p.Get("everybody") != ""}
}
