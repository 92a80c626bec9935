package status

import (
	"slices"
	"time"
)

const (
	// cadenceKept is how many completions of checkpoints a cadence remembers, and cadenceLeast
	// how many distances between them it takes to expect another.
	cadenceKept, cadenceLeast = 8, 3
	// cadenceSpread is by how much of the median a distance may differ from it, and cadenceOdd
	// how many distances may differ more, as the one in which a task was lost does.
	cadenceSpread, cadenceOdd = 0.25, 1
	// cadenceNoise is what a distance may differ in any case: completions are noticed, not told.
	cadenceNoise = 2 * time.Second
)

// cadence expects the next complete checkpoint, by when the last ones were complete. It is not
// safe for concurrent use.
type cadence struct {
	step int64
	at   []time.Time // the oldest first
}

// cadenceOf returns the cadence of a predecessor that knew the newest complete checkpoint and
// expected another: one after the distance that it had come to know; zero: it did not.
func cadenceOf(step, atMS, nextMS int64) cadence {
	c := cadence{step: step}
	if distance := nextMS - atMS; atMS != 0 && distance > 0 {
		for i := range int64(cadenceLeast + 1) {
			c.at = append(c.at, time.UnixMilli(atMS-(cadenceLeast-i)*distance))
		}
	}
	return c
}

// complete takes in the step of the newest complete checkpoint. It may be called for one
// several times. Where the step is an earlier one, the job was rolled back, and what was before
// does not count.
func (c *cadence) complete(step int64, now time.Time) {
	switch {
	case step == c.step:
		return
	case step < c.step:
		c.at = nil
	}
	c.step, c.at = step, append(c.at, now)
	c.at = c.at[max(0, len(c.at)-cadenceKept):]
}

// next returns when the next checkpoint is expected to be complete; the zero time if the
// distances of the last ones are too few or too different to say.
func (c *cadence) next() time.Time {
	var distances []time.Duration
	for i := 1; i < len(c.at); i++ {
		distances = append(distances, c.at[i].Sub(c.at[i-1]))
	}
	if len(distances) < cadenceLeast {
		return time.Time{}
	}
	slices.Sort(distances)
	median := distances[len(distances)/2]
	odd := 0
	for _, d := range distances {
		if (d - median).Abs() > max(cadenceNoise, time.Duration(cadenceSpread*float64(median))) {
			odd++
		}
	}
	if odd > cadenceOdd {
		return time.Time{}
	}
	return c.at[len(c.at)-1].Add(median)
}
