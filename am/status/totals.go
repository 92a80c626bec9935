package status

import (
	"maps"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// Totals counts what happened to the job, also where the lists of the status, which are
// bounded, do not have it any longer. After a takeover it begins with the incidents that
// the predecessor left.
type Totals struct {
	Losses        map[string]uint64 // by the text of event.Cause; every cause has an entry
	Recovery      Histogram         // from a loss to the start of the next attempt
	Progress      Histogram         // from a loss to the first new step of the job
	RepeatedSteps uint64            // see proto.Incident.lost_steps
	StoredBytes   uint64            // in files that tasks have completed in checkpoint directories
	Saves         Histogram         // of checkpoints that were sealed: from the first change of a file until the last was in its place
	Restores      Histogram         // of attempts: see proto.Restore
}

// HistogramBounds are the upper bounds of the buckets of a Histogram, in seconds.
var HistogramBounds = [...]float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800}

// Histogram counts times.
type Histogram struct {
	Buckets [len(HistogramBounds)]uint64 // cumulative: times up to the bound
	Count   uint64
	Sum     float64 // seconds
}

func (h *Histogram) add(ms int64) {
	seconds := float64(ms) / 1000
	h.Count++
	h.Sum += seconds
	for i, bound := range HistogramBounds {
		if seconds <= bound {
			h.Buckets[i]++
		}
	}
}

// newTotals returns the totals of the incidents of a predecessor.
func newTotals(incidents []*proto.Incident) *Totals {
	t := &Totals{Losses: map[string]uint64{}}
	for _, text := range event.CauseTexts() {
		t.Losses[text] = 0
	}
	for _, i := range incidents {
		t.lost(i)
		if i.RecoveredUnixMs != 0 {
			t.recovered(i)
		}
		if i.ProgressUnixMs != 0 {
			t.progressed(i)
		}
	}
	return t
}

func (t *Totals) lost(i *proto.Incident)      { t.Losses[i.Cause]++ }
func (t *Totals) recovered(i *proto.Incident) { t.Recovery.add(i.RecoveredAfterMs) }
func (t *Totals) progressed(i *proto.Incident) {
	t.Progress.add(i.ProgressAfterMs)
	t.RepeatedSteps += uint64(max(0, i.LostSteps))
}

// Totals returns a copy of the present totals.
func (s *Store) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := *s.totals
	t.Losses = maps.Clone(t.Losses)
	return t
}
