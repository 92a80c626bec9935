package drawing

import (
	"fmt"

	"holdfast/am/web/text"
	"holdfast/proto"
)

// markDistance is the least distance between marks of checkpoints, in percent of the axis's
// width: it bounds their number.
const markDistance = 1.25

// Group is the series that share a chart.
type Group struct {
	Title string
	List  []*proto.Series
}

// Groups returns what is drawn in one chart each: scalars first, those of roles, and of
// tasks too if some were asked for.
func Groups(list []*proto.Series, chosen bool) (groups []Group) {
	type key struct{ name, role string }
	at := map[key]int{}
	add := func(k key, title string, s *proto.Series) {
		i, known := at[k]
		if !known {
			i = len(groups)
			at[k], groups = i, append(groups, Group{Title: title})
		}
		groups[i].List = append(groups[i].List, s)
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

var titles = map[string]string{proto.SeriesStep: "step", proto.SeriesStepsPerSecond: "steps a second", proto.SeriesCPU: "CPUs in use", proto.SeriesMemory: "memory",
	proto.SeriesSent: "sent over TCP, bytes a second", proto.SeriesReceived: "received over TCP, bytes a second", proto.SeriesGPU: "GPUs busy, percent", proto.SeriesGPUMemory: "memory of GPUs"}

func quantityOf(s *proto.Series) quantity {
	switch {
	case s.Scalar:
		return quantity{format: plain}
	case s.Name == proto.SeriesMemory || s.Name == proto.SeriesGPUMemory || s.Name == proto.SeriesSent || s.Name == proto.SeriesReceived:
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

// CheckpointMarks marks when checkpoints were complete; of those that are close to each other,
// the last.
func (a *Axis) CheckpointMarks(all *proto.JobSamples) (list []Mark) {
	first := 0.0 // of those that the last mark stands for
	for _, s := range all.GetSeries() {
		if s.Name != proto.SeriesCompleteStep || s.Scalar {
			continue
		}
		for i, at := range s.Times() {
			if !a.Has(at) || !s.Has(i) {
				continue
			}
			m := Mark{X: a.X(at), Class: "sealed", Title: text.MomentTitle(at, fmt.Sprintf("checkpoint of step %s complete", plain(float64(s.Max[i]))))}
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
