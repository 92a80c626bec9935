package web

import (
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/proto"
)

const (
	// chartPoints bounds the points of a line.
	chartPoints = 300
	// tasksPlotted is how many tasks are plotted.
	tasksPlotted = 8
	// markDistance is the least distance between marks of checkpoints, in percent of the
	// axis's width: it bounds their number.
	markDistance = 1.25
)

// SampleSource returns those measurements of a job that a request asks for; the caller may
// change them. The method Samples of am/status.Store is one.
type SampleSource func(context.Context, *proto.SamplesRequest) (*proto.JobSamples, error)

// plots are the charts of a job, over one part of its life.
type plots struct {
	axis
	Charts      []*chart
	Losses      []mark
	Checkpoints []mark
	Down        []bar // from a loss to its recovery
	Query       plotQuery
	Tasks       []string // that are plotted
	Of          int      // tasks of the job
}

// plotQuery says what is plotted, by the parameters of the page's address.
type plotQuery struct {
	Span  string
	Log   bool     // logarithmic vertical axes
	Tasks []string // "": the first ones
}

func parsePlotQuery(p url.Values) plotQuery {
	q := plotQuery{Span: p.Get("span"), Log: p.Get("log") != ""}
	q.Tasks = strings.FieldsFunc(strings.Join(p["task"], " "), func(r rune) bool { return r == ',' || r == ' ' })
	q.Tasks = q.Tasks[:min(len(q.Tasks), tasksPlotted)]
	return q
}

// TaskText is the tasks as they are typed.
func (q plotQuery) TaskText() string { return strings.Join(q.Tasks, " ") }

// values are the parameters of the address that asks for the same.
func (q plotQuery) values() url.Values {
	p := url.Values{}
	for key, value := range map[string]string{"span": q.Span, "task": q.TaskText(), "log": map[bool]string{true: "1"}[q.Log]} {
		if value != "" {
			p.Set(key, value)
		}
	}
	return p
}

// SpanAddress returns the page's address with another part of the job's life.
func (q plotQuery) SpanAddress(span string) string {
	q.Span = span
	return "plots?" + q.values().Encode()
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
	v, err := s.newPlots(r.Context(), status, q, tasks, func(all []group) []group { return all })
	return "plots", v, err
}

// mainPlots draws what the page of the job shows: the first scalar, or else the step, and
// the rate.
func (s *server) mainPlots(ctx context.Context, status *proto.JobStatus, span string) (*plots, error) {
	return s.newPlots(ctx, status, plotQuery{Span: span}, nil, func(all []group) (list []group) {
		for i, g := range all {
			if i == 0 || g.list[0].Name == proto.SeriesStepsPerSecond {
				list = append(list, g)
			}
		}
		return list
	})
}

// newPlots draws those groups that pick returns, of the job's series and those of tasks.
func (s *server) newPlots(ctx context.Context, status *proto.JobStatus, q plotQuery, tasks []string, pick func([]group) []group) (*plots, error) {
	v := &plots{Query: q, Of: len(status.Tasks), Tasks: tasks}
	a := newAxis(status, q.Span, time.Now())
	if a == nil || s.Samples == nil {
		return v, nil
	}
	v.axis = *a
	got, err := s.Samples(ctx, &proto.SamplesRequest{Tasks: tasks})
	if err != nil {
		return nil, err
	}
	for _, g := range pick(grouped(v.choose(got), len(q.Tasks) > 0)) {
		quantity := quantityOf(g.list[0])
		quantity.log = q.Log
		for _, series := range g.list {
			series.Reduce(v.reduced(series))
		}
		if c := newChart(a, g.title, quantity, g.list, nameOf); c != nil {
			p := q.values()
			p.Set("name", g.list[0].Name)
			p.Set("role", g.list[0].Role)
			c.CSV = "samples.csv?" + p.Encode()
			v.Charts = append(v.Charts, c)
		}
	}
	v.mark(status, got)
	return v, nil
}

// choose returns the series that are the finest of those that cover the axis.
func (v *plots) choose(all *proto.JobSamples) []*proto.Series {
	list := slices.Clone(all.GetSeries())
	for i, s := range list {
		for _, r := range all.GetRecent() {
			if r.Name == s.Name && r.Role == s.Role && r.Task == s.Task && r.StartUnixMs <= v.from && r.IntervalMs < s.IntervalMs {
				list[i] = r
			}
		}
	}
	return list
}

// reduced is how many points a series is reduced to, so that within the axis it has no more
// than chartPoints.
func (v *plots) reduced(s *proto.Series) int {
	within := float64(v.to-v.from) / float64(s.IntervalMs)
	if within <= chartPoints {
		return 0
	}
	return int(math.Ceil(float64(len(s.Mean)) * chartPoints / within))
}

// group is the series that share a chart.
type group struct {
	title string
	list  []*proto.Series
}

// grouped returns what is drawn in one chart each: scalars first, those of roles, and of
// tasks too if some were asked for.
func grouped(list []*proto.Series, chosen bool) (groups []group) {
	type key struct{ name, role string }
	at := map[key]int{}
	add := func(k key, title string, s *proto.Series) {
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k], groups = i, append(groups, group{title: title})
		}
		groups[i].list = append(groups[i].list, s)
	}
	roles := map[string]map[string]bool{}
	for _, s := range list {
		if s.Scalar {
			if roles[s.Name] == nil {
				roles[s.Name] = map[string]bool{}
			}
			roles[s.Name][s.Role] = true
		}
	}
	for _, s := range list {
		if s.Scalar && (s.Task == "" || chosen) {
			title := s.Name
			if len(roles[s.Name]) > 1 {
				title += " (" + s.Role + ")"
			}
			add(key{s.Name, s.Role}, title, s)
		}
	}
	for _, s := range list {
		if !s.Scalar && s.Name != proto.SeriesCompleteStep {
			title := titles[s.Name]
			if title == "" {
				title = s.Name
			}
			add(key{name: s.Name}, title, s)
		}
	}
	return groups
}

var titles = map[string]string{proto.SeriesStep: "step", proto.SeriesStepsPerSecond: "steps a second", proto.SeriesCPU: "CPUs in use", proto.SeriesMemory: "memory"}

func quantityOf(s *proto.Series) quantity {
	switch {
	case s.Scalar:
		return quantity{format: plain}
	case s.Name == proto.SeriesMemory:
		return quantity{format: bytesShown, binary: true, fromZero: true}
	}
	return quantity{format: plain, fromZero: s.Name != proto.SeriesStep, grows: s.Name == proto.SeriesStep}
}

// nameOf is what a line is called.
func nameOf(s *proto.Series) string {
	switch {
	case s.Task != "":
		return s.Task
	case s.Scalar:
		return s.Role
	}
	return "job"
}

// mark marks losses, what followed, and checkpoints.
func (v *plots) mark(status *proto.JobStatus, all *proto.JobSamples) {
	for _, i := range status.Incidents {
		back := i.RecoveredUnixMs
		if back == 0 && status.IsOpen(i) {
			back = v.to
		}
		if back >= v.from && back > i.AtUnixMs {
			x := v.x(i.AtUnixMs)
			v.Down = append(v.Down, bar{X: x, Width: percent(max(minBar, v.x(back)-x))})
		}
		if v.has(i.AtUnixMs) {
			v.Losses = append(v.Losses, mark{X: v.x(i.AtUnixMs), Title: momentTitle(i.AtUnixMs, i.Task+" lost: "+i.Cause), Address: "./#" + incidentID(i)})
		}
	}
	v.Checkpoints = v.checkpoints(all)
}

// checkpoints marks when checkpoints were complete; of those that are close to each other,
// the last.
func (a *axis) checkpoints(all *proto.JobSamples) (list []mark) {
	first := 0.0 // of those that the last mark stands for
	for _, s := range all.GetSeries() {
		if s.Name != proto.SeriesCompleteStep || s.Scalar {
			continue
		}
		for i, at := range s.Times() {
			if !a.has(at) || !s.Has(i) {
				continue
			}
			m := mark{X: a.x(at), Class: "sealed", Title: momentTitle(at, fmt.Sprintf("checkpoint of step %s complete", plain(float64(s.Max[i]))))}
			if last := len(list) - 1; last >= 0 && m.X-first < markDistance {
				list[last] = m
				continue
			}
			first = m.X
			list = append(list, m)
		}
	}
	return list
}

// samplesJSON answers with samples as JSON: the parameters name and task select, each any
// number of times, and points bounds their points.
func (s *server) samplesJSON(w http.ResponseWriter, r *http.Request) {
	p := r.URL.Query()
	points, err := strconv.Atoi(p.Get("points"))
	if p.Get("points") != "" && (err != nil || points < 1) {
		Fail(w, r, http.StatusBadRequest, "points="+p.Get("points")+" is no number of points")
		return
	}
	got, err := s.Samples(r.Context(), &proto.SamplesRequest{Names: p["name"], Tasks: p["task"], Points: int32(points)})
	if err != nil {
		failWith(w, r, err)
		return
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
	p := r.URL.Query()
	q := parsePlotQuery(p)
	status, _ := s.Status.Snapshot()
	a := newAxis(status, q.Span, time.Now())
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
	if a == nil {
		return
	}
	v := &plots{axis: *a}
	for _, series := range v.choose(got) {
		if series.Role != p.Get("role") && series.Scalar {
			continue
		}
		number := func(f float32) string { return strconv.FormatFloat(float64(f), 'g', -1, 32) }
		for i, at := range series.Times() {
			if a.has(at) && series.Has(i) {
				_ = out.Write([]string{ // the reader went away
					time.UnixMilli(at).UTC().Format(time.RFC3339), series.Name, series.Role, series.Task,
					number(series.Min[i]), number(series.Mean[i]), number(series.Max[i]),
				})
			}
		}
	}
}
