package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

const (
	// tensorsShown and filesShown bound the rows of the page of a checkpoint.
	tensorsShown = 100
	filesShown   = 50
	// patience is how long a page waits for what is being read before it shows how far that
	// has come, and patienceJSON how long an answer of JSON does.
	patience     = 2 * time.Second
	patienceJSON = 30 * time.Second
	// lookTimeout bounds the time that looking into checkpoints takes for one answer.
	lookTimeout = 45 * time.Second
	// othersShown bounds the checkpoints that are offered for a comparison.
	othersShown = 200
)

// bounded has a view fail in good time before its answer would be cut off.
func bounded(v view) view {
	return func(r *http.Request, status *proto.JobStatus) (string, any, error) {
		ctx, cancel := context.WithTimeout(r.Context(), lookTimeout)
		defer cancel()
		name, content, err := v(r.WithContext(ctx), status)
		if err != nil && ctx.Err() == context.DeadlineExceeded {
			err = fmt.Errorf("looking into the checkpoints takes more than %v; try again, or use yarn-submit ckpt: %w", lookTimeout, err)
		}
		return name, content, err
	}
}

// waiting returns a context for the time that a request may wait for a reading.
func waiting(r *http.Request) (context.Context, context.CancelFunc) {
	if asksJSON(r) {
		return context.WithTimeout(r.Context(), patienceJSON)
	}
	return context.WithTimeout(r.Context(), patience)
}

// checkpointView is what the page of one checkpoint shows.
type checkpointView struct {
	checkpointRow
	Entry *inspect.Entry
	Dir   int
	Path  string // of the directory, as the script spells it

	Files    []inspect.File
	FilePage pager

	Query        tensorQuery
	Tensors      []tensorRow
	TensorsError string // why they cannot be shown
	Total        int
	Matching     int
	Elements     int64 // of all tensors of numbers
	TensorPage   pager

	Verified inspect.Reading[inspect.Verification]
	Asked    bool // to verify it
	Others   []checkpointRow
	Commands []string
}

// tensorQuery selects and orders tensors by the parameters of the page's address.
type tensorQuery struct {
	Text string // in the name; * and ? as in ckpt show --filter
	Sort string // "": the largest first; or name
}

type tensorRow struct {
	inspect.Tensor
	Address string
}

// ShapeText is the shape as people write it: 64 × 128; "scalar" for none.
func (t tensorRow) ShapeText() string { return shapeText(t.Shape) }

// Where says in which file the tensor is.
func (t tensorRow) Where() string {
	if t.Pieces > 1 {
		return strconv.Itoa(t.Pieces) + " pieces"
	}
	return t.File[strings.LastIndexByte(t.File, '/')+1:]
}

func shapeText(shape []int64) string {
	if len(shape) == 0 {
		return "scalar"
	}
	var parts []string
	for _, d := range shape {
		parts = append(parts, strconv.FormatInt(d, 10))
	}
	return strings.Join(parts, " × ")
}

// checkpoint shows one checkpoint: its files and tensors.
func (s *server) checkpoint(r *http.Request, _ *proto.JobStatus) (string, any, error) {
	p := parametersOf(r)
	v := &checkpointView{Dir: p.number("dir", 0, 0), Query: tensorQuery{p.Get("q"), p.Get("sort")}, Asked: p.Get("verify") != ""}
	filesPage, tensorsPage := p.number("files", 1, 1), p.number("page", 1, 1)
	if p.err != nil {
		return "", nil, p.err
	}
	var err error
	if v.Entry, err = s.Checkpoints.Checkpoint(r.Context(), v.Dir, p.Get("at")); err != nil {
		return "", nil, err
	}
	v.Path = s.Checkpoints.Directories()[v.Dir].Path
	v.checkpointRow = checkpointRow{Checkpoint: &v.Entry.Checkpoint, Address: checkpointAddress(v.Dir, v.Entry.Location), Now: time.Now()}
	files := v.Entry.Files()
	v.FilePage = page("checkpoint", p.Values, "files", len(files), filesPage, filesShown)
	v.Files = files[v.FilePage.First:v.FilePage.End]
	if v.Entry.HasTensors() {
		if err := v.findTensors(r.Context(), s.Checkpoints, p.Values, tensorsPage); err != nil {
			v.TensorsError = err.Error()
		}
	}
	ctx, cancel := waiting(r)
	defer cancel()
	if !v.Asked {
		cancel() // it is only shown what is known
	}
	v.Verified = s.Checkpoints.Verify(ctx, v.Dir, v.Entry, v.Asked)
	v.Others = others(r.Context(), s.Checkpoints, v.Dir, v.Entry.Location)
	v.Commands = commandsFor(v.Entry)
	return "checkpoint", v, nil
}

func (v *checkpointView) findTensors(ctx context.Context, b *inspect.Browser, p url.Values, number int) error {
	all, err := b.Tensors(ctx, v.Dir, v.Entry)
	if err != nil {
		return err
	}
	like := inspect.Like(v.Query.Text)
	var matching []inspect.Tensor
	for _, t := range all {
		if t.DType != "string" {
			v.Elements += elements(t.Shape)
		}
		if like(t.Name) {
			matching = append(matching, t)
		}
	}
	if v.Query.Sort == "name" {
		slices.SortFunc(matching, func(a, b inspect.Tensor) int { return strings.Compare(a.Name, b.Name) })
	}
	v.Total, v.Matching = len(all), len(matching)
	v.TensorPage = page("checkpoint", p, "page", len(matching), number, tensorsShown)
	for _, t := range matching[v.TensorPage.First:v.TensorPage.End] {
		v.Tensors = append(v.Tensors, tensorRow{t, tensorAddress(v.Dir, v.Entry.Location, t.Name)})
	}
	return nil
}

func elements(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// others returns what a checkpoint can be compared with, the newest first.
func others(ctx context.Context, b *inspect.Browser, dir int, location string) (list []checkpointRow) {
	found, err := b.List(ctx, dir)
	if err != nil {
		return nil // it was listed a moment ago
	}
	for i := range found.Checkpoints {
		e := &found.Checkpoints[i]
		if e.Location != location && e.Complete && e.HasTensors() && len(list) < othersShown {
			list = append(list, checkpointRow{Checkpoint: &e.Checkpoint, Now: time.Now()})
		}
	}
	return list
}

// commandsFor returns the commands that do more with a checkpoint than the page.
func commandsFor(e *inspect.Entry) []string {
	which := e.Name
	if e.Step != nil {
		which = strconv.FormatInt(*e.Step, 10)
	}
	command := func(args ...string) string { return shellLine(append([]string{"yarn-submit", "ckpt"}, args...)) }
	var list []string
	if !e.Retained {
		list = append(list, command("get", e.Directory, e.Name, "DIR"), command("verify", e.Directory, e.Name))
	}
	if e.CanGoBackTo() {
		list = append(list, command("rollback", e.Directory, which))
	}
	return append(list, command("prune", e.Directory, "--keep", "3"))
}

// RollbackAddress is the address of the plan to go back to the checkpoint; empty if there is
// none.
func (v *checkpointView) RollbackAddress() string {
	if !v.CanGoBackTo() {
		return ""
	}
	return rollbackAddress(v.Dir, v.Checkpoint)
}

// Previous is the location of the checkpoint that was saved before this one; empty if there is
// none to compare it with.
func (v *checkpointView) Previous() string {
	for _, o := range v.Others { // the newest first
		if o.Step != nil && v.Step != nil && *o.Step < *v.Step {
			return o.Location
		}
	}
	return ""
}

// SortAddress returns the page's address with another order of the tensors.
func (v *checkpointView) SortAddress(key string) string {
	p := url.Values{"dir": {strconv.Itoa(v.Dir)}, "at": {v.Location}}
	if v.Query.Text != "" {
		p.Set("q", v.Query.Text)
	}
	if key != "" {
		p.Set("sort", key)
	}
	return "checkpoint?" + p.Encode() + "#tensors"
}

func (v *checkpointView) frame(f *frame) {
	f.JSON = "checkpoint.json?" + url.Values{"dir": {strconv.Itoa(v.Dir)}, "at": {v.Location}}.Encode()
	f.Updates = pollWhile(v.Verified.Started && !v.Verified.Finished || v.Asked && !v.Verified.Finished)
}

// pollWhile is how a page is updated that shows how far something has come.
func pollWhile(goesOn bool) string {
	if goesOn {
		return "poll"
	}
	return ""
}

// readingJSON is how far a reading has come as JSON.
type readingJSON struct {
	Started bool          `json:"started"`
	Done    int64         `json:"done_bytes"`
	Total   int64         `json:"total_bytes"`
	Before  string        `json:"before"` // what is read first
	Ended   *inspect.Time `json:"ended"`  // null if it goes on
	Error   string        `json:"error"`
}

func readingOf[T any](r inspect.Reading[T]) readingJSON {
	j := readingJSON{Started: r.Started, Done: r.Done, Total: r.Total, Before: r.Before}
	if r.Finished {
		j.Ended = &inspect.Time{Time: r.At}
	}
	if r.Err != nil {
		j.Error = r.Err.Error()
	}
	return j
}

func (v *checkpointView) json() (int, any) {
	type verification struct {
		readingJSON
		OK       bool              `json:"ok"`
		Problems []inspect.Problem `json:"problems"`
		Omitted  int               `json:"omitted"`
	}
	answer := struct {
		inspect.Details
		FilesPages   int          `json:"files_pages"`
		TensorsError string       `json:"tensors_error"`
		Total        int          `json:"tensors_total"`
		Matching     int          `json:"tensors_matching"`
		Page         int          `json:"page"`
		Pages        int          `json:"pages"`
		Verification verification `json:"verification"`
	}{
		Details:      inspect.Details{Checkpoint: *v.Checkpoint, Files: v.Files, Tensors: []inspect.Tensor{}},
		FilesPages:   v.FilePage.Pages,
		TensorsError: v.TensorsError, Total: v.Total, Matching: v.Matching, Page: max(1, v.TensorPage.Page), Pages: max(1, v.TensorPage.Pages),
		Verification: verification{readingOf(v.Verified), v.Verified.Result.OK, append([]inspect.Problem{}, v.Verified.Result.Problems...), v.Verified.Result.Omitted},
	}
	for _, t := range v.Tensors {
		answer.Tensors = append(answer.Tensors, t.Tensor)
	}
	if v.Asked && !v.Verified.Finished {
		return http.StatusAccepted, answer
	}
	return http.StatusOK, answer
}
