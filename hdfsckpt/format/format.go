// Package format defines what makes a set of files a checkpoint: the contract of a Format, of
// which there is one for each form of checkpoints (package formats, beside this one). Code
// that lists, seals, verifies, retains, moves aside or removes checkpoints asks the format,
// and decides nothing by its name.
//
// The contract is in format.go, contents.go and pointer.go. What all formats share is in
// checkpoint.go, rule.go and names.go; walk.go searches a store for checkpoints.
//
// # Words
//
// A format claims files that are a checkpoint together. Its marker is the file without
// which it does not count, mostly the one that a save writes last. A pointer is a file
// beside checkpoints that names the one which programs restore; where a format has
// none, programs choose by what is there, mostly the highest step. A rule is what a
// store's user says about its checkpoints.
package format

import (
	"context"
	"encoding/json"
	"path"

	"holdfast/hdfsckpt/store"
)

// Format is one form of checkpoints. Its methods may be called by many goroutines. A
// format may also be a Contents, a Pointer, a Reviewer, a Sweeper or a SaveRecorder.
type Format interface {
	// Traits returns what holds for all checkpoints of the format.
	Traits() Traits
	// Claim finds the format's checkpoints among the entries of a directory.
	Claim(ctx context.Context, d *Dir) ([]Claim, error)
	// Owners returns the checkpoints that a file may be a part of by its name. Of which it
	// is one, if of any, Claim finds out: what is claimed further out takes precedence.
	Owners(file string) []Owner
}

// Traits are what holds for all checkpoints of a format.
type Traits struct {
	Kind Kind
	// FoundBy are other formats: a rule for one of them finds this one's too.
	FoundBy []Kind
	// Unnamed: no rule can ask for it alone.
	Unnamed bool
	// Last has patterns (path.Match) of base names: the file that a save writes last
	// matches one of them.
	Last []string
	// CompleteWhen is, for a person, when a checkpoint counts as complete.
	CompleteWhen string
	// MayGrow: files may be added to a checkpoint that is complete.
	MayGrow bool
	// Steady: a save does not pause for seconds between two files, so that one in which
	// nothing happens was lost, and what it was to replace can be restored while other
	// tasks run. Of other formats that has to wait until none does.
	Steady bool
	// RankFile reports whether a file by that base name can be read only by the rank that
	// wrote it, in a checkpoint of whatever format; nil if none is such.
	RankFile func(base string) bool
	// Summed is, for a person, which of its files have checksums of their own: NotSummed if
	// none has, empty if all have.
	Summed string
	// Spare is the suffix of files that no restore needs; empty if there are none.
	Spare string
	// RepairsPointer: where its pointer does not name what can be restored, it is changed
	// before tasks start. It is set for TensorFlow's alone: the pointers of others are
	// changed only when a person asks for it (Rollback).
	RepairsPointer bool
	// OwnRule: a rule of the user's making (Rule.Own) finds them, and no others.
	OwnRule bool
	// Beside has patterns (path.Match) of the names of what lies beside a checkpoint and
	// shows whether that is complete. One that was sealed, or begun to be removed, is
	// complete whatever becomes of it.
	Beside []string
	// AloneInStepDir: a directory that is named after a step may hold one of a series.
	AloneInStepDir bool
}

// NotSummed is Traits.Summed of a format without checksums.
const NotSummed = "none"

// Owner is a checkpoint that a file may be a part of.
type Owner struct {
	Checkpoint string // its name
	// Rule finds it whatever the store's rule leaves out; zero if the store's applies.
	Rule Rule
	// InPlace: a program that replaces the file saves over the checkpoint. If it is not
	// set, the file may be changed by itself, while the others stay.
	InPlace bool
	// Beside is that of the format's Traits.
	Beside []string
	// Series is the same for checkpoints that can take each other's place when one is
	// removed; empty: none can, as no step is in the name.
	Series string
}

// SavedInPlace is the checkpoint of that name, which a program saves over by replacing the
// file that makes it one.
func SavedInPlace(name string) Owner {
	return Owner{Checkpoint: name, InPlace: true, Series: SeriesOf(name)}
}

// OwnedByStep are the checkpoints that a file may be a part of if the directories named after a
// step in which it lies are some, those that is reports.
func OwnedByStep(file string, is func(base string) bool) []Owner {
	var all []Owner
	for _, dir := range StepDirsOf(file) {
		if is(path.Base(dir)) {
			all = append(all, Owner{Checkpoint: dir, Series: SeriesOf(dir)})
		}
	}
	return all
}

// Claim is a group of a directory's entries that are one checkpoint.
type Claim struct {
	// Take are the names of entries that belong to the checkpoint alone: formats of
	// lower precedence do not see them, and they are not searched.
	Take []string
	// Of are the names of those that it consists of, where it takes none.
	Of []string
	// Whole: the directory is the checkpoint, with all that is in it.
	Whole bool
	// Inside: the directory, or those that it takes, are searched for what other formats know.
	// The checkpoint is torn where that is.
	Inside bool
	// Loose: nothing in the files themselves shows whether it is complete, or one alone does that the
	// program has written. What lies in another checkpoint is not judged by that.
	Loose bool
	// Check looks into the files; nil if there is no checkpoint after all. State is
	// Complete, Torn or Unchecked. It is called once, after Claim has returned.
	Check func(ctx context.Context) (*Checkpoint, error)
}

// Reviewer is a Format whose checkpoints can be judged only beside one another.
type Reviewer interface {
	Format
	// Review is called with all checkpoints that were found, of whatever format.
	Review(r Rule, found []Checkpoint)
}

// Sweeper is a Format whose saves leave files that are part of no checkpoint when they
// are broken off.
type Sweeper interface {
	Format
	// Leftover reports what an entry may be of a broken save.
	Leftover(e store.Info) Leftover
	// Part reports whether a file in a directory of parts is what a save puts there.
	Part(e store.Info) bool
}

// Lister is a Format whose programs go by a file beside the checkpoints that lists them, and
// says which of them is the last.
type Lister interface {
	Format
	// ListFile is the base name of the file.
	ListFile() string
	// ListEntry returns what a list says of a checkpoint, by its base name; nil if nothing.
	ListEntry(list []byte, name string) json.RawMessage
	// Relist returns a list in which the checkpoints that gone reports are not, some that
	// ListEntry has returned are, and the last is another one.
	Relist(list []byte, gone func(name string) bool, back []json.RawMessage, last string) ([]byte, error)
}

// Leftover is what an entry of a directory may be of a broken save.
type Leftover int

const (
	NoLeftover Leftover = iota
	// TemporaryFile becomes a file of a checkpoint, or a pointer.
	TemporaryFile
	// PartsDir is a directory in which a save collects its parts.
	PartsDir
)

// Planned is a Format whose checkpoints tell how many steps the program makes in all.
type Planned interface {
	Format
	// TotalSteps returns how many steps those are; 0 if the checkpoint does not tell.
	TotalSteps(ctx context.Context, s store.Store, c *Checkpoint) (int64, error)
}

// SaveRecorder is a Format for which it is recorded that a task saves, because the files
// themselves show their format only at the end of the save.
type SaveRecorder interface {
	Format
	// BeginsSave reports, by its name, whether a directory may be such a save, or a file its last.
	BeginsSave(name string, dir bool) bool
	// BeginSave records that a task makes that directory or file.
	BeginSave(ctx context.Context, s store.Store, name string) error
	// SavesEnded is called when the program has ended by itself.
	SavesEnded(ctx context.Context, s store.Store) error
	// ForgetSaves drops records of saves that are gone.
	ForgetSaves(ctx context.Context, s store.Store) error
}
