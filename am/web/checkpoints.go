package web

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/am/web/text"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

const (
	// checkpointsShown bounds the checkpoints on a page, and with them its size;
	// checkpointsEach those of each directory where several are shown.
	checkpointsShown = 100
	checkpointsEach  = 10
)

// Checkpoints returns a browser of a job's checkpoint directories, which are opened by open;
// nil if it has none. The caller closes it.
func Checkpoints(spec *proto.JobSpec, open func(ctx context.Context, uri string) (store.Store, error)) *inspect.Browser {
	if len(spec.GetCheckpoints()) == 0 {
		return nil
	}
	var dirs []inspect.Directory
	for _, c := range spec.Checkpoints {
		dirs = append(dirs, inspect.Directory{Path: c.Path, URI: c.Uri})
	}
	return inspect.NewBrowser(dirs, open)
}

// checkpointsView is the checkpoints of all directories, or of one.
type checkpointsView struct {
	Query       checkpointQuery
	Directories []directoryView
	Several     bool // the job has several directories
	States      []string
}

// directoryView is a page of the checkpoints of a directory.
type directoryView struct {
	inspect.Directory
	Index           int
	Query           checkpointQuery
	Error           string // why there is no listing
	Listing         bool   // it is being made
	Found           *inspect.Found
	Rows            []checkpointRow // the newest first
	Matching, Total int
	Restart         *checkpointRow // what tasks continue from; nil if nothing
	Answer          *stepAnswer    // of the query's step; nil if it has none
	pager
}

// checkpointRow is a row of the table of checkpoints.
type checkpointRow struct {
	*inspect.Checkpoint
	Address string // of its page; empty if it has none
	// Restorable is the address of the plan to restore one that a rollback has moved aside.
	Restorable string
	Now        time.Time
}

// checkpointQuery selects checkpoints by the parameters of the page's address.
type checkpointQuery struct {
	Dir         int // -1: all
	Text, State string
	StepText    string // as it was written
	Step        *int64 // nil: any, or what was written is none
	Page        int
}

func parseCheckpointQuery(p *parameters) checkpointQuery {
	q := checkpointQuery{Dir: p.number("dir", -1, 0), Text: p.Get("q"), State: p.Get("state"), StepText: p.Get("step"), Page: p.number("page", 1, 1)}
	// As people write it, too: 12,000.
	if step, err := strconv.ParseInt(strings.NewReplacer(",", "", " ", "").Replace(q.StepText), 10, 64); err == nil {
		q.Step = &step
	}
	return q
}

// NoStep reports whether what was written for a step is none.
func (q checkpointQuery) NoStep() bool { return strings.TrimSpace(q.StepText) != "" && q.Step == nil }

// Any reports whether the query leaves checkpoints out.
func (q checkpointQuery) Any() bool { return q.Text != "" || q.State != "" || q.Step != nil }

// Encoded is the query as parameters of an address.
func (q checkpointQuery) Encoded() template.URL { return template.URL(q.parameters().Encode()) }

func (q checkpointQuery) parameters() url.Values {
	p := url.Values{}
	if q.Dir >= 0 {
		p.Set("dir", strconv.Itoa(q.Dir))
	}
	for key, value := range map[string]string{"q": q.Text, "state": q.State, "step": q.StepText} {
		if value != "" {
			p.Set(key, value)
		}
	}
	if q.Page > 1 {
		p.Set("page", strconv.Itoa(q.Page))
	}
	return p
}

// matches reports whether the query selects a checkpoint: by its step or the beginning of it, or
// a part of its name.
func (q checkpointQuery) matches(c *inspect.Checkpoint) bool {
	if q.State != "" && stateOf(c) != q.State || q.Step != nil && (c.Step == nil || *c.Step != *q.Step) {
		return false
	}
	return q.Text == "" || c.Step != nil && strings.HasPrefix(strconv.FormatInt(*c.Step, 10), q.Text) ||
		strings.Contains(strings.ToLower(c.Name), strings.ToLower(q.Text))
}

// stateOf returns a checkpoint's state, and for those that are not in their places where they
// are.
func stateOf(c *inspect.Checkpoint) string {
	switch {
	case c.Retained:
		return "retained"
	case c.Aside != "":
		return "moved aside"
	}
	return c.State
}

// checkpoints shows the checkpoints of the job's directories.
func (s *server) checkpoints(r *http.Request, status *proto.JobStatus) (string, any, error) {
	p := parametersOf(r)
	q := parseCheckpointQuery(p)
	if q.NoStep() && asksJSON(r) { // the page says so beside the field
		p.bad("step", "a number")
	}
	if p.err != nil {
		return "", nil, p.err
	}
	all := s.Checkpoints.Directories()
	v := &checkpointsView{Query: q, Several: len(all) > 1, States: []string{"sealed", "complete", "in progress", "torn", "unchecked", "retained", "moved aside"}}
	each := checkpointsShown
	if q.Dir < 0 && len(all) > 1 {
		each, q.Page = checkpointsEach, 1
	}
	ctx, cancel := waiting(r)
	defer cancel()
	for i, d := range all {
		if q.Dir >= 0 && i != q.Dir {
			continue
		}
		view := directoryView{Directory: d, Index: i, Query: q}
		view.Query.Dir = i
		var err error
		view.Found, err = s.Checkpoints.List(ctx, i)
		switch {
		case err == nil:
			view.show(each)
		case ctx.Err() != nil:
			view.Listing, view.Error = true, "The directory is being listed: look again in a moment."
		case errors.Is(err, fs.ErrNotExist) && s.Spec != nil && !status.State.Done():
			view.Error = "There is none yet: the directory is made before the tasks start."
		default:
			view.Error = err.Error()
		}
		v.Directories = append(v.Directories, view)
	}
	if len(v.Directories) == 0 {
		return "", nil, errNotFound
	}
	return "checkpoints", v, nil
}

// show selects what is shown of a listing.
func (v *directoryView) show(each int) {
	v.Total = len(v.Found.Checkpoints)
	var matching []*inspect.Entry
	for i := range v.Found.Checkpoints {
		e := &v.Found.Checkpoints[i]
		if e.Restart {
			row := v.row(e)
			v.Restart = &row
		}
		if v.Query.matches(&e.Checkpoint) {
			matching = append(matching, e)
		}
	}
	switch {
	case v.Query.Step != nil:
		v.Answer = v.answerStep(*v.Query.Step)
	case v.Query.NoStep():
		v.Answer = &stepAnswer{Text: fmt.Sprintf("“%s” is no step: write a number.", v.Query.StepText), Class: "torn"}
	}
	v.Matching = len(matching)
	v.pager = page("checkpoints", v.Query.parameters(), "page", v.Matching, v.Query.Page, each)
	for _, e := range matching[v.First:v.End] {
		v.Rows = append(v.Rows, v.row(e))
	}
}

func (v *directoryView) row(e *inspect.Entry) checkpointRow {
	row := checkpointRow{Checkpoint: &e.Checkpoint, Now: time.Now()}
	if e.Aside == "" {
		row.Address = checkpointAddress(v.Index, e.Location)
	} else if e.RolledBack {
		row.Restorable = rollbackAddress(v.Index, &e.Checkpoint)
	}
	return row
}

// stepAnswer says whether tasks can continue from a step, and where to read on.
type stepAnswer struct {
	Text    string
	Class   string // of the words of checkpoints' states
	Address string // of the checkpoint; "" if it has no page
}

// answerStep says whether tasks can continue from a step of a listing.
func (v *directoryView) answerStep(step int64) *stepAnswer {
	var at, before, after *inspect.Entry
	for i := range v.Found.Checkpoints { // the newest first
		e := &v.Found.Checkpoints[i]
		if e.Step == nil {
			continue
		}
		kept := !e.Retained && e.Aside == ""
		switch {
		case *e.Step == step:
			if at == nil || kept && e.Complete && !(at.Complete && !at.Retained && at.Aside == "") {
				at = e
			}
		case !kept || !e.Complete:
		case *e.Step > step:
			after = e
		case before == nil:
			before = e
		}
	}
	if at == nil {
		a := &stepAnswer{Text: fmt.Sprintf("No: there is no checkpoint of step %d.", step), Class: "torn"}
		switch {
		case before != nil && after != nil:
			a.Text += fmt.Sprintf(" Complete ones nearby are those of the steps %s and %s.", stepText(&before.Checkpoint), stepText(&after.Checkpoint))
		case before != nil:
			a.Text += fmt.Sprintf(" The complete one nearby is that of step %s.", stepText(&before.Checkpoint))
		case after != nil:
			a.Text += fmt.Sprintf(" The complete one nearby is that of step %s.", stepText(&after.Checkpoint))
		}
		return a
	}
	row := v.row(at)
	name := fmt.Sprintf("step %s is %s", row.StepText(), row.StateOf())
	a := &stepAnswer{Class: row.Class(), Address: row.Address}
	switch {
	case at.Restart:
		a.Text = "Yes: tasks that start now continue from it; " + name + "."
	case at.CanGoBackTo():
		a.Text = "Yes, after a rollback to it; " + name + "."
		if v.Restart != nil {
			a.Text = fmt.Sprintf("Yes, after a rollback to it; %s, and tasks that start now continue from %s.", name, stepTitle(v.Restart.Checkpoint))
		}
	case at.Aside != "":
		a.Text = "No: " + name + ", because " + at.Why + "."
	case at.Complete:
		a.Text = fmt.Sprintf("No: of step %s there is only %s, which programs take by its name.", row.StepText(), at.Name)
	default:
		a.Text = "No: " + name
		if at.Why != "" {
			a.Text += ": " + at.Why
		}
		a.Text += "."
	}
	return a
}

// checkpointAddress returns the address of a checkpoint's page.
func checkpointAddress(dir int, location string) string {
	return "checkpoint?" + url.Values{"dir": {strconv.Itoa(dir)}, "at": {location}}.Encode()
}

func (c checkpointRow) Age() string      { return text.Duration(c.Now.Sub(c.Time.Time)) }
func (c checkpointRow) SavedMs() int64   { return c.Time.UnixMilli() }
func (c checkpointRow) StateOf() string  { return stateOf(c.Checkpoint) }
func (c checkpointRow) Class() string    { return strings.ReplaceAll(c.StateOf(), " ", "-") }
func (c checkpointRow) StepText() string { return stepText(c.Checkpoint) }

// Title names the checkpoint: by its step, if that is known.
func (c checkpointRow) Title() string {
	if c.Step != nil {
		return stepText(c.Checkpoint)
	}
	return c.Name
}

// WrittenBy says which job wrote it; empty if that is not known.
func (c checkpointRow) WrittenBy() string {
	if c.Job == "" {
		return ""
	}
	text := c.Job
	if c.Generation != nil && *c.Generation > 0 {
		text += ", generation " + strconv.FormatInt(*c.Generation, 10)
	}
	return text
}

// stepTitle names a checkpoint in a sentence: by its step, if that is known.
func stepTitle(c *inspect.Checkpoint) string {
	if c.Step == nil {
		return c.Name
	}
	return "step " + stepText(c)
}

func stepText(c *inspect.Checkpoint) string {
	if c.Step == nil {
		return "–"
	}
	return humanize.Comma(*c.Step)
}

func (v *checkpointsView) frame(f *frame) {
	f.JSON = "checkpoints.json?" + v.Query.parameters().Encode()
	if slices.ContainsFunc(v.Directories, func(d directoryView) bool { return d.Listing }) {
		f.Updates = "poll"
	}
}

// listingJSON is a page of the checkpoints of a directory as JSON.
type listingJSON struct {
	Path        string               `json:"path"` // as the job's script spells it
	URI         string               `json:"uri"`
	Error       string               `json:"error"`  // why it could not be listed
	Listed      *inspect.Time        `json:"listed"` // null if it could not be
	Total       int                  `json:"total"`
	Matching    int                  `json:"matching"`
	Page        int                  `json:"page"`
	Pages       int                  `json:"pages"`
	Answer      string               `json:"answer"`      // to whether tasks can continue from the step that was asked for
	Checkpoints []inspect.Checkpoint `json:"checkpoints"` // the newest first
}

func (v *checkpointsView) json() (int, any) {
	list := []listingJSON{}
	for _, d := range v.Directories {
		l := listingJSON{Path: d.Path, URI: d.URI, Error: d.Error, Total: d.Total, Matching: d.Matching, Page: d.pager.Page, Pages: d.Pages, Checkpoints: []inspect.Checkpoint{}}
		if d.Found != nil {
			l.Listed = &inspect.Time{Time: d.Found.At}
		}
		if d.Answer != nil {
			l.Answer = d.Answer.Text
		}
		for _, row := range d.Rows {
			l.Checkpoints = append(l.Checkpoints, *row.Checkpoint)
		}
		list = append(list, l)
	}
	return http.StatusOK, map[string]any{"directories": list}
}

// pager is a part of a list, and the addresses of the others.
type pager struct {
	First, End   int    // positions in the list
	Page, Pages  int    // counted from 1
	Newer, Older string // addresses of the pages before and after it; empty where there are none
}

// page cuts a list into pages and returns one. Page 1 is what the list begins with. The
// parameter with that key has the number of the page in addresses.
func page(address string, parameters url.Values, key string, length, number, each int) pager {
	p := pager{Pages: max(1, (length+each-1)/each)}
	p.Page = min(max(1, number), p.Pages)
	p.First = (p.Page - 1) * each
	p.End = min(length, p.First+each)
	at := func(n int) string {
		if n < 1 || n > p.Pages {
			return ""
		}
		q := url.Values{}
		for other, values := range parameters {
			q[other] = slices.Clone(values)
		}
		q.Del("verify") // asks for more than to be shown another page
		q.Del(key)
		if n > 1 {
			q.Set(key, strconv.Itoa(n))
		}
		return address + "?" + q.Encode()
	}
	p.Newer, p.Older = at(p.Page-1), at(p.Page+1)
	return p
}
