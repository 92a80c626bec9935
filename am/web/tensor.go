package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/am/web/drawing"
	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
)

// tensorAddress returns the address of a tensor's page.
func tensorAddress(dir int, location, name string) string {
	return "tensor?" + url.Values{"dir": {strconv.Itoa(dir)}, "at": {location}, "tensor": {name}}.Encode()
}

// tensorView is what the page of one tensor shows.
type tensorView struct {
	checkpointRow
	Dir       int
	Tensor    tensorRow
	Read      inspect.Reading[inspect.Values]
	Histogram *drawing.Histogram // nil: there is none
	Log       bool
}

// tensor shows one tensor: what is in it.
func (s *server) tensor(r *http.Request, _ *proto.JobStatus) (string, any, error) {
	p := parametersOf(r)
	v := &tensorView{Dir: p.number("dir", 0, 0), Log: p.Get("scale") == "log"}
	if p.err != nil {
		return "", nil, p.err
	}
	e, err := s.Checkpoints.Checkpoint(r.Context(), v.Dir, p.Get("at"))
	if err != nil {
		return "", nil, err
	}
	v.checkpointRow = checkpointRow{Checkpoint: &e.Checkpoint, Address: checkpointAddress(v.Dir, e.Location), Now: time.Now()}
	if !e.HasTensors() {
		return "", nil, errNotFound
	}
	all, err := s.Checkpoints.Tensors(r.Context(), v.Dir, e)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(all, func(t inspect.Tensor) bool { return t.Name == p.Get("tensor") })
	if i < 0 {
		return "", nil, errNotFound
	}
	v.Tensor = tensorRow{all[i], tensorAddress(v.Dir, e.Location, all[i].Name)}
	ctx, cancel := waiting(r)
	defer cancel()
	v.Read = s.Checkpoints.Summarise(ctx, v.Dir, e, all[i].Name)
	if v.Read.Finished && v.Read.Err == nil {
		v.Histogram = drawing.DrawHistogram(v.Read.Result, v.Log)
	}
	return "tensor", v, nil
}

// ElementCount is how many elements the tensor has.
func (v *tensorView) ElementCount() string { return humanize.Comma(elements(v.Tensor.Shape)) }

// Summarised reports whether there is a summary of the values.
func (v *tensorView) Summarised() bool {
	return v.Read.Finished && v.Read.Err == nil && v.Read.Result.Elements > 0
}

// Finite reports whether any of the values is.
func (v *tensorView) Finite() bool {
	r := v.Read.Result
	return r.Elements > r.NaN+r.Inf
}

// Problem is why there is none.
func (v *tensorView) Problem() string {
	if v.Read.Err != nil {
		return v.Read.Err.Error()
	}
	return ""
}

func (v *tensorView) frame(f *frame) {
	f.JSON = "tensor.json?" + url.Values{"dir": {strconv.Itoa(v.Dir)}, "at": {v.Location}, "tensor": {v.Tensor.Name}}.Encode()
	f.Updates = pollWhile(!v.Read.Finished)
}

func (v *tensorView) json() (int, any) {
	if !v.Read.Finished {
		return http.StatusAccepted, map[string]any{"reading": readingOf(v.Read)}
	}
	if v.Read.Err != nil {
		return 0, v.Read.Err
	}
	return http.StatusOK, v.Read.Result
}
