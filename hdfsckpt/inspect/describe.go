package inspect

import (
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
)

// Time is a time as docs/json.md has it: RFC 3339, in UTC, with milliseconds.
type Time struct{ time.Time }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(t.UTC().Format(`"2006-01-02T15:04:05.000Z07:00"`)), nil
}

// Listing is the JSON of ckpt ls.
type Listing struct {
	Checkpoints []Checkpoint `json:"checkpoints"` // the oldest first
}

// Checkpoint is a checkpoint in JSON.
type Checkpoint struct {
	Directory string `json:"directory"`
	Name      string `json:"name"`
	Location  string `json:"location"` // in the directory; of a retained one not its name
	Kind      string `json:"kind"`
	Step      *int64 `json:"step"` // null if its name has none
	Time      Time   `json:"time"`
	Bytes     int64  `json:"bytes"`
	Shards    int    `json:"shards"`
	FileCount int    `json:"file_count"`
	State     string `json:"state"`
	Complete  bool   `json:"complete"`
	Why       string `json:"why"`
	Current   bool   `json:"current"` // the file "checkpoint" names it
	Newest    bool   `json:"newest"`  // of the complete ones
	Restart   bool   `json:"restart"` // tasks that are started now continue from it
	// Retained: the program has removed or replaced it.
	Retained bool `json:"retained"`
	// Aside is where one lies that was moved aside: a torn one before tasks started, or one that
	// is newer than what a rollback went back to. RolledBack: another rollback can restore it.
	Aside      string `json:"aside"`
	RolledBack bool   `json:"rolled_back"`

	// Of a sealed one: when it was, and what wrote it.
	Sealed     *Time  `json:"sealed"`
	Job        string `json:"job"`
	Generation *int64 `json:"generation"`
	After      string `json:"after"` // the recovery before it

	named bool // its step is in its name
}

// CanGoBackTo reports whether a rollback to the checkpoint's step is one to it. A step that is only
// in what it holds, as that of last.ckpt, is another checkpoint's to programs.
func (c *Checkpoint) CanGoBackTo() bool { return c.Complete && c.named }

// Describe returns some of the checkpoints of a directory for JSON output. all are those in
// their places there, by which the newest one is known.
func Describe(uri string, some, all []format.Checkpoint) []Checkpoint {
	newest, restart := format.NewestComplete(all), format.RestartFrom(all)
	is := func(c, other *format.Checkpoint) bool {
		return other != nil && c.Name == other.Name && c.Kind == other.Kind
	}
	described := make([]Checkpoint, len(some))
	for i := range some {
		c, d := &some[i], &described[i]
		name, retained := c.Original()
		*d = Checkpoint{
			Directory: uri, Name: name, Location: c.Name, Retained: retained, Kind: string(c.Kind), Time: Time{c.Time},
			Bytes: c.Size, Shards: c.Shards, FileCount: len(c.Files),
			State: string(c.State), Complete: c.Whole(), Why: c.Why, Current: c.Current, Newest: is(c, newest), Restart: is(c, restart),
		}
		if c.Step != format.NoStep {
			d.Step, d.named = &c.Step, c.NamedStep() != format.NoStep
		}
		if m := c.Manifest; m != nil {
			d.Sealed, d.Job, d.Generation, d.After = &Time{m.Sealed}, m.Job, &m.Generation, m.After
		}
	}
	return described
}

// DescribeAside returns a list of checkpoints that were moved aside, for JSON output.
func DescribeAside(uri string, list []hdfsckpt.Aside) []Checkpoint {
	all := make([]Checkpoint, len(list))
	for i := range list {
		a := &list[i]
		all[i] = Checkpoint{
			Directory: uri, Name: a.Name, Location: a.Where, Kind: string(a.Kind), Time: Time{a.Moved}, Bytes: a.Size,
			State: string(format.Torn), Why: a.Why, Aside: a.Where,
		}
		if a.Step != format.NoStep {
			all[i].Step, all[i].named = &a.Step, true
		}
		if r := a.Rollback; r != nil {
			c := &all[i]
			c.Shards, c.FileCount, c.State = r.Shards, r.Files, string(r.State)
			c.Complete = r.State == format.Complete || r.State == format.Sealed
			c.RolledBack = c.CanGoBackTo()
		}
	}
	return all
}

// missing is an error about something that was asked for and is not there.
type missing struct{ text string }

func (m missing) Error() string { return m.text }

// IsMissing reports whether an error says that there is no checkpoint, directory or tensor as
// was asked for.
func IsMissing(err error) bool {
	_, ok := err.(missing)
	return ok
}
