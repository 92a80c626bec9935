package web

import (
	"context"
	"encoding/csv"
	"errors"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/am/web/drawing"
	"holdfast/am/web/text"
	"holdfast/proto"
)

const (
	// chartPoints bounds the points of a line.
	chartPoints = 180
	// tasksPlotted is how many tasks are plotted.
	tasksPlotted = 8
)

// SampleSource returns those measurements of a job that a request asks for; the caller may
// change them. The method Samples of am/status.Store is one.
type SampleSource func(context.Context, *proto.SamplesRequest) (*proto.JobSamples, error)

// plots are the charts of a job, over one part of its life.
type plots struct {
	drawing.Axis
	Charts      []*drawing.Chart
	Losses      []drawing.Mark
	Checkpoints []drawing.Mark
	Down        []drawing.Bar // from a loss to its recovery
	Query       plotQuery
	Parts       *parts
	Tasks       []string // that are plotted
	Of          int      // tasks of the job
}

// plotQuery says what is plotted, by the parameters of the page's address.
type plotQuery struct {
	drawing.Part
	Log   bool     // logarithmic vertical axes
	Tasks []string // "": the first ones
}

func parsePlotQuery(p url.Values) plotQuery {
	q := plotQuery{Part: drawing.ParsePart(p), Log: p.Get("log") != ""}
	q.Tasks = strings.FieldsFunc(strings.Join(p["task"], " "), func(r rune) bool { return r == ',' || r == ' ' })
	q.Tasks = q.Tasks[:min(len(q.Tasks), tasksPlotted)]
	return q
}

// TaskText is the tasks as they are typed.
func (q plotQuery) TaskText() string { return strings.Join(q.Tasks, " ") }

// values are the parameters of the address that asks for the same.
func (q plotQuery) values() url.Values {
	p := url.Values{}
	q.Put(p)
	for key, value := range map[string]string{"task": q.TaskText(), "log": map[bool]string{true: "1"}[q.Log]} {
		if value != "" {
			p.Set(key, value)
		}
	}
	return p
}

// PartAddress returns the page's address with another part of the job's life.
func (q plotQuery) PartAddress(part drawing.Part) string {
	q.Part = part
	return "plots?" + q.values().Encode()
}

// Samples returns the parameters by which samples.json has what is plotted.
func (v *plots) Samples() template.URL {
	p := v.Query.Part.Values()
	for _, t := range v.Tasks {
		p.Add("task", t)
	}
	return template.URL(p.Encode())
}

// csvAddress returns the address of what a chart of the series of a group has, as text: it names the
// tasks whose series these are, whether somebody has asked for them or not.
func csvAddress(part drawing.Part, g drawing.Group) string {
	p := part.Values()
	p.Set("name", g.List[0].Name)
	p.Set("role", g.List[0].Role)
	for _, s := range g.List {
		if s.Task != "" {
			p.Add("task", s.Task)
		}
	}
	return "samples.csv?" + p.Encode()
}

// plots shows all charts of the job.
func (s *server) plots(r *http.Request, status *proto.JobStatus) (string, any, error) {
	q := parsePlotQuery(r.URL.Query())
	tasks := q.Tasks
	if len(tasks) == 0 {
		for _, t := range status.Tasks[:min(len(status.Tasks), tasksPlotted)] {
			tasks = append(tasks, t.Task)
		}
	}
	v, err := s.newPlots(r.Context(), status, q, tasks, func(all []drawing.Group) []drawing.Group { return all })
	return "plots", v, err
}

// mainPlots draws what the page of the job shows: the first scalar, or else the step, and
// the rate.
func (s *server) mainPlots(ctx context.Context, status *proto.JobStatus, part drawing.Part) (*plots, error) {
	return s.newPlots(ctx, status, plotQuery{Part: part}, nil, func(all []drawing.Group) (list []drawing.Group) {
		for i, g := range all {
			if i == 0 || g.List[0].Name == proto.SeriesStepsPerSecond {
				list = append(list, g)
			}
		}
		return list
	})
}

// newPlots draws those groups that pick returns, of the job's series and those of tasks.
func (s *server) newPlots(ctx context.Context, status *proto.JobStatus, q plotQuery, tasks []string, pick func([]drawing.Group) []drawing.Group) (*plots, error) {
	v := &plots{Query: q, Of: len(status.Tasks), Tasks: tasks}
	a := drawing.NewAxis(status, q.Part, time.Now())
	if a == nil || s.Samples == nil {
		return v, nil
	}
	v.Axis = *a
	got, err := s.Samples(ctx, &proto.SamplesRequest{Tasks: tasks})
	if err != nil {
		return nil, err
	}
	for _, g := range pick(drawing.Groups(v.choose(got), len(q.Tasks) > 0)) {
		for _, series := range g.List {
			series.Reduce(v.reduced(series))
		}
		if c := drawing.NewChart(a, g, q.Log); c != nil {
			c.CSV = csvAddress(q.Part, g)
			v.Charts = append(v.Charts, c)
		}
	}
	v.Parts = newParts(a, q.PartAddress)
	v.mark(status, got)
	return v, nil
}

// choose returns the series that are the finest of those that cover the axis.
func (v *plots) choose(all *proto.JobSamples) []*proto.Series {
	list := slices.Clone(all.GetSeries())
	for i, s := range list {
		for _, r := range all.GetRecent() {
			if r.Name == s.Name && r.Role == s.Role && r.Task == s.Task && r.StartUnixMs <= v.From && r.IntervalMs < s.IntervalMs {
				list[i] = r
			}
		}
	}
	return list
}

// reduced is how many points a series is reduced to, so that within the axis it has no more
// than chartPoints.
func (v *plots) reduced(s *proto.Series) int {
	within := float64(v.To-v.From) / float64(s.IntervalMs)
	if within <= chartPoints {
		return 0
	}
	return int(math.Ceil(float64(len(s.Mean)) * chartPoints / within))
}

// mark marks losses, what followed, and checkpoints.
func (v *plots) mark(status *proto.JobStatus, all *proto.JobSamples) {
	shown, _ := newestIncidents(status, nil, "")
	address := addressesOf(status, shown, "./")
	for _, i := range status.Incidents {
		back := i.RecoveredUnixMs
		if back == 0 && status.IsOpen(i) {
			back = v.End
		}
		if back >= v.From && back > i.AtUnixMs && i.AtUnixMs <= v.To {
			x := v.X(i.AtUnixMs)
			v.Down = append(v.Down, drawing.Bar{X: x, Width: drawing.Percent(max(drawing.MinBar, v.X(back)-x))})
		}
		if v.Has(i.AtUnixMs) {
			v.Losses = append(v.Losses, drawing.Mark{X: v.X(i.AtUnixMs), Title: text.MomentTitle(i.AtUnixMs, i.Task+" lost: "+i.Cause), Address: address(i)})
		}
	}
	v.Checkpoints = v.CheckpointMarks(all)
}

// samplesJSON answers with samples as JSON: the parameters name and task select, each any
// number of times, span, or from and to, a part of the job's life, and points bounds their points.
func (s *server) samplesJSON(w http.ResponseWriter, r *http.Request) {
	p := parametersOf(r)
	points := min(p.number("points", 0, 1), math.MaxInt32)
	if p.err != nil {
		failWith(w, r, p.err)
		return
	}
	if err := drawing.CheckPart(p.Values); err != nil {
		Fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	request := &proto.SamplesRequest{Names: p.Values["name"], Tasks: p.Values["task"], Points: int32(points)}
	status, _ := s.Status.Snapshot()
	part := drawing.ParsePart(p.Values)
	a := drawing.NewAxis(status, part, time.Now())
	missed := a.Misses(part)
	if !a.Whole() {
		request.Points = 0 // of the part
	}
	got, err := s.Samples(r.Context(), request)
	if err != nil {
		failWith(w, r, err)
		return
	}
	for _, series := range slices.Concat(got.Series, got.Recent) {
		switch {
		case missed:
			series.Cut(part.From, part.To)
		case !a.Whole():
			series.Cut(a.From, a.To).Reduce(points)
		}
	}
	text, err := proto.JSON(got)
	if err != nil {
		failWith(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, text)
}

// samplesCSV answers with the values of one chart as text: a row for each point of a series.
func (s *server) samplesCSV(w http.ResponseWriter, r *http.Request) {
	p := parametersOf(r)
	if err := errors.Join(p.err, drawing.CheckPart(p.Values)); err != nil {
		Fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	q := parsePlotQuery(p.Values)
	status, _ := s.Status.Snapshot()
	a := drawing.NewAxis(status, q.Part, time.Now())
	got, err := s.Samples(r.Context(), &proto.SamplesRequest{Names: []string{p.Get("name")}, Tasks: q.Tasks})
	if err != nil {
		failWith(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="samples.csv"`)
	out := csv.NewWriter(w)
	defer out.Flush()
	_ = out.Write([]string{"time", "name", "role", "task", "min", "mean", "max"})
	if a == nil || a.Misses(q.Part) {
		return
	}
	v := &plots{Axis: *a}
	for _, series := range v.choose(got) {
		if series.Role != p.Get("role") && series.Scalar {
			continue
		}
		number := func(f float32) string { return strconv.FormatFloat(float64(f), 'g', -1, 32) }
		for i, at := range series.Times() {
			if a.Has(at) && series.Has(i) {
				_ = out.Write([]string{ // the reader went away
					time.UnixMilli(at).UTC().Format(time.RFC3339), series.Name, series.Role, series.Task,
					number(series.Min[i]), number(series.Mean[i]), number(series.Max[i]),
				})
			}
		}
	}
}
