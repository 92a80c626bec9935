package format

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

// Kind is a format's name: in specs, manifests and JSON.
type Kind string

// State is whether a checkpoint can be restored from.
type State string

const (
	// Sealed: complete, and with a manifest that its files still agree with.
	Sealed State = "sealed"
	// Complete: every file that belongs to it is there, with its length.
	Complete State = "complete"
	// Torn: it cannot be restored from; Checkpoint.Why says what is wrong.
	Torn State = "torn"
	// InProgress: not complete, and written to a short while ago.
	InProgress State = "in progress"
	// Unchecked: nothing in it shows whether it is complete. It counts as not
	// complete, and is never removed automatically. Why says more.
	Unchecked State = "unchecked"
)

// Checkpoint is a checkpoint in a store.
type Checkpoint struct {
	Name    string    // the prefix, directory or file, relative to the store's root
	Kind    Kind      //
	Step    int64     // NoStep if the name has none
	Time    time.Time // of its last file
	Size    int64     // bytes, all files together
	Shards  int       // files with values
	Files   []File    // sorted by name
	Extra   []File    // named as its own, but of another save: they are removed with it
	State   State     //
	Why     string    // what is wrong; of a complete one: why its manifest was not read
	Current bool      // its format's pointer names it

	Manifest *manifest.Manifest // of a sealed one

	// Marker is the file without which it does not count as complete; empty if that
	// file is missing, or the format has none.
	Marker string
	// Certain: if it is torn, it is so by its format's own rules, and is moved aside
	// before tasks start.
	Certain bool
	// Inferred: its format is concluded from how the save began. It may be a program's
	// own, and is moved aside only when no task runs.
	Inferred bool
	// Unnumbered: its step is not in its name, but in what it holds, as that of last.ckpt,
	// which programs save over.
	Unnumbered bool
	// FixedWorld: as many ranks are needed to go on from it as have saved it.
	FixedWorld bool
	// Former is the name that a retained one had; empty for others.
	Former string

	format   Format // set by the search that found it
	inPlace  bool   // its directory is named by a number that is not its step (Dir.Place)
	unlisted string // a directory of it that was too deep to be listed
	judged   asJudged
}

// File is a file of a checkpoint.
type File struct {
	Name    string // relative to the store's root
	Size    int64
	ModTime time.Time
	Inode   uint64 // as in store.Info
}

// FileOf returns a file by its entry in a directory.
func FileOf(dir string, i store.Info) File {
	return File{Name: path.Join(dir, i.Name), Size: i.Size, ModTime: i.ModTime, Inode: i.Inode}
}

// NamedStep is the step in its name; NoStep for one that is Unnumbered, too.
func (c *Checkpoint) NamedStep() int64 {
	if c.Unnumbered {
		return NoStep
	}
	return c.Step
}

// Unsealed has it say why it counts as complete only, although it has a manifest.
func (c *Checkpoint) Unsealed(why error) {
	c.Why = "it does not count as sealed: its manifest " + why.Error()
}

// Whole reports whether the checkpoint can be restored from.
func (c *Checkpoint) Whole() bool { return c.State == Complete || c.State == Sealed }

// MarkTorn has it count as torn, or in progress if it was written to a short while ago.
func (c *Checkpoint) MarkTorn() {
	if c.State = Torn; time.Since(c.Time) < recent {
		c.State = InProgress
	}
}

// IsDir reports whether the checkpoint is a directory with all that is in it.
func (c *Checkpoint) IsDir() bool {
	return len(c.Files) > 0 && strings.HasPrefix(c.Files[0].Name, c.Name+"/")
}

// Holds reports whether a file by that name relative to the checkpoint, a directory, is one of its files.
func (c *Checkpoint) Holds(name string) bool {
	return slices.ContainsFunc(c.Files, func(f File) bool { return f.Name == path.Join(c.Name, name) })
}

// Traits returns those of the checkpoint's format; zero for one that no search has found.
func (c *Checkpoint) Traits() Traits {
	if c.format == nil {
		return Traits{}
	}
	return c.format.Traits()
}

// EndsByMarker reports whether the file that a save writes last is part of the format.
// To others, which are complete by what their files say, more may still be added: the
// optimizer's file after the model's, other ranks' states.
func (c *Checkpoint) EndsByMarker() bool { return !c.Traits().MayGrow }

// Pointer returns the format's pointer; nil if programs choose among its checkpoints
// by what is there.
func (c *Checkpoint) Pointer() Pointer {
	p, _ := c.format.(Pointer)
	return p
}

// Contents returns the format's reader of tensors and checksums; nil if it has none.
func (c *Checkpoint) Contents() Contents {
	r, _ := c.format.(Contents)
	return r
}

// Planned returns the format's reader of how many steps the program makes in all; nil if it has
// none.
func (c *Checkpoint) Planned() Planned {
	p, _ := c.format.(Planned)
	return p
}

// SeriesDir returns the directory in which checkpoints of one series lie, or the
// directories that each hold one of them.
func (c *Checkpoint) SeriesDir() string {
	dir := path.Dir(c.Name)
	if c.IsAlone() {
		dir = path.Dir(dir)
	}
	return dir
}

// IsAlone reports whether the checkpoint is what a directory named after its step holds.
func (c *Checkpoint) IsAlone() bool {
	return c.Traits().AloneInStepDir && IsStepDir(path.Base(path.Dir(c.Name))) && !c.IsInPlace()
}

// IsInPlace reports whether the directory of the checkpoint is named by a number that is not its
// step, but that of a run, say, which may have more.
func (c *Checkpoint) IsInPlace() bool {
	dir := path.Base(path.Dir(c.Name))
	return IsNumber(dir) && (c.inPlace || !counts(dir, path.Base(c.Name)))
}

// Series is that of its name (SeriesOf), or its name if no number tells it from others.
func (c *Checkpoint) Series() string { return cmp.Or(SeriesOf(c.Name), c.Name) }

// Agrees reports whether the checkpoint's files are still those that were sealed, as
// far as that can be seen without reading them.
func (c *Checkpoint) Agrees(m *manifest.Manifest) bool {
	now := map[string]File{}
	for _, f := range c.Files {
		now[f.Name] = f
	}
	t := c.Traits()
	for _, s := range m.Files {
		f, ok := now[s.Name]
		if !ok && t.Spare != "" && strings.HasSuffix(s.Name, t.Spare) {
			continue
		}
		if !ok || f.Size != s.Size || !f.ModTime.Truncate(time.Millisecond).Equal(s.ModTime) {
			return false
		}
	}
	return m.Kind == string(c.Kind) && (!c.IsDir() || len(c.Files) == len(m.Files)) // a directory may have got more
}

// WasSealed reports whether it is as it was when it was sealed. unread says why that is not known of
// one whose manifest exceeds a bound.
func (c *Checkpoint) WasSealed(ctx context.Context, s store.Store) (was bool, unread, err error) {
	m, unread, err := manifest.Read(ctx, s, manifest.Path(c.Name))
	return m != nil && c.Agrees(m), unread, err
}

// Original returns the name that the program gave it, and whether it is retained.
func (c *Checkpoint) Original() (name string, retained bool) {
	if c.Former != "" {
		return c.Former, true
	}
	return c.Name, false
}
