package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// changesShown bounds the rows of the page of a difference.
const changesShown = 100

// differenceView is what differs between two checkpoints.
type differenceView struct {
	Dir      int
	From, To checkpointRow
	Others   []checkpointRow // that can be chosen
	Same     bool            // both are one
	Read     inspect.Reading[inspect.Comparison]
	Counts   []changeCount
	Query    tensorQuery
	Rows     []changeRow
	Matching int
	pager
}

type changeCount struct {
	Change string
	N      int
}

// changeRow is a tensor that differs.
type changeRow struct {
	inspect.Change
	FromAddress, ToAddress string // of the tensor's pages; empty where it is missing
}

// Relative is the norm of the difference in terms of that of the first.
func (c changeRow) Relative() string {
	if c.Norm == nil || c.Former == nil || *c.Former == 0 {
		return ""
	}
	return fmt.Sprintf("%.3g %%", 100**c.Norm / *c.Former)
}

// difference compares two checkpoints.
func (s *server) difference(r *http.Request, _ *proto.JobStatus) (string, any, error) {
	p := parametersOf(r)
	v := &differenceView{Dir: p.number("dir", 0, 0), Query: tensorQuery{p.Get("q"), p.Get("sort")}}
	number := p.number("page", 1, 1)
	if p.err != nil {
		return "", nil, p.err
	}
	from, err := s.Checkpoints.Checkpoint(r.Context(), v.Dir, p.Get("from"))
	if err != nil {
		return "", nil, err
	}
	to, err := s.Checkpoints.Checkpoint(r.Context(), v.Dir, p.Get("to"))
	if err != nil {
		return "", nil, err
	}
	v.From = checkpointRow{Checkpoint: &from.Checkpoint, Address: checkpointAddress(v.Dir, from.Location), Now: time.Now()}
	v.To = checkpointRow{Checkpoint: &to.Checkpoint, Address: checkpointAddress(v.Dir, to.Location), Now: time.Now()}
	v.Others = others(r.Context(), s.Checkpoints, v.Dir, "")
	if v.Same = from.Location == to.Location; v.Same {
		return "difference", v, nil
	}
	ctx, cancel := waiting(r)
	defer cancel()
	v.Read = s.Checkpoints.Compare(ctx, v.Dir, from, to)
	v.show(p.Values, number)
	return "difference", v, nil
}

// show selects what is shown of the changes.
func (v *differenceView) show(p url.Values, number int) {
	like := inspect.Like(v.Query.Text)
	var matching []inspect.Change
	for _, c := range v.Read.Result.Changes {
		i := slices.IndexFunc(v.Counts, func(n changeCount) bool { return n.Change == c.Change })
		if i < 0 {
			i, v.Counts = len(v.Counts), append(v.Counts, changeCount{Change: c.Change})
		}
		v.Counts[i].N++
		if like(c.Name) {
			matching = append(matching, c)
		}
	}
	if v.Query.Sort == "relative" {
		slices.SortStableFunc(matching, func(a, b inspect.Change) int { return cmp.Compare(relative(b), relative(a)) })
	}
	v.Matching = len(matching)
	v.pager = page("difference", p, "page", len(matching), number, changesShown)
	for _, c := range matching[v.First:v.End] {
		row := changeRow{Change: c}
		if c.From != "" {
			row.FromAddress = tensorAddress(v.Dir, v.From.Location, c.Name)
		}
		if c.To != "" {
			row.ToAddress = tensorAddress(v.Dir, v.To.Location, c.Name)
		}
		v.Rows = append(v.Rows, row)
	}
}

// relative is how much a tensor has changed, for an order; what has no such number comes
// first, as it has changed most.
func relative(c inspect.Change) float64 {
	switch {
	case c.Norm == nil || c.Former == nil || *c.Former == 0:
		return 1e308
	}
	return *c.Norm / *c.Former
}

func (v *differenceView) parameters() url.Values {
	return url.Values{"dir": {strconv.Itoa(v.Dir)}, "from": {v.From.Location}, "to": {v.To.Location}}
}

// SortAddress returns the page's address with another order of the tensors.
func (v *differenceView) SortAddress(key string) string {
	p := v.parameters()
	for name, value := range map[string]string{"q": v.Query.Text, "sort": key} {
		if value != "" {
			p.Set(name, value)
		}
	}
	return "difference?" + p.Encode()
}

func (v *differenceView) frame(f *frame) {
	f.JSON = "difference.json?" + v.parameters().Encode()
	f.Updates = pollWhile(!v.Same && !v.Read.Finished)
}

func (v *differenceView) json() (int, any) {
	switch {
	case v.Same:
		return http.StatusOK, map[string]any{"changes": []inspect.Change{}, "total": 0, "omitted": 0, "matching": 0, "page": 1, "pages": 1}
	case !v.Read.Finished:
		return http.StatusAccepted, map[string]any{"reading": readingOf(v.Read)}
	case v.Read.Err != nil:
		return 0, v.Read.Err
	}
	changes := []inspect.Change{}
	for _, row := range v.Rows {
		changes = append(changes, row.Change)
	}
	return http.StatusOK, map[string]any{
		"changes": changes, "total": len(v.Read.Result.Changes), "omitted": v.Read.Result.Omitted,
		"matching": v.Matching, "page": v.Page, "pages": v.Pages,
	}
}
