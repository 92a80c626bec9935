package formats

import (
	"context"
	"path"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// A saver writes the file `checkpoint` after the index of what it has saved. One that is killed
// between its first index and the first `checkpoint` leaves nothing that tells it from a program
// which writes no `checkpoint`, as tf.train.Checkpoint.write does not, or from what a user has put
// there: but for a record that a task was to make the index. A program that saves another step
// while there is no `checkpoint`, or that has ended by itself, is of the other kind, and nothing
// more is recorded for that directory.
//
//	.holdfast/first/FILE.json    FILE: `checkpoint` in that directory, an entry
const firstDir = store.OwnDir + "/first"

// firstSave is such a record.
type firstSave struct {
	File string `json:"file"`           // relative to the store's root
	Name string `json:"name,omitempty"` // of the save
	Own  bool   `json:"own,omitempty"`  // the program writes no `checkpoint`
}

func (r firstSave) about() string { return r.File }

func firstName(file string) string { return store.RecordName(firstDir, file) }

func stateFileBeside(name string) string { return path.Join(path.Dir(name), tfbundle.StateFile) }

// BeginsSave: it is only of saves that are called after their steps that a program finds the newest
// by `checkpoint`. What is a part of a save has an index, too.
func (tensorFlow) BeginsSave(name string, dir bool) bool {
	prefix, isIndex := strings.CutSuffix(path.Base(name), indexSuffix)
	return !dir && isIndex && format.StepAfterDash(prefix) != format.NoStep && len(OwnersOf(name)) > 0
}

func (tensorFlow) BeginSave(ctx context.Context, s store.Store, index string) error {
	name, file := strings.TrimSuffix(index, indexSuffix), stateFileBeside(index)
	if there, err := store.Exists(ctx, s, file); err != nil || there {
		return err
	}
	before, err := readFirst(ctx, s, firstName(file))
	if err != nil || before.File == file && (before.Own || before.Name == name) {
		return err
	}
	return writeFirst(ctx, s, firstSave{File: file, Name: name, Own: before.File == file})
}

func (tensorFlow) SavesEnded(ctx context.Context, s store.Store) error {
	return eachFirst(ctx, s, func(r firstSave) error {
		if there, err := store.Exists(ctx, s, r.File); err != nil || there || r.Own {
			return err
		}
		r.Own = true
		return writeFirst(ctx, s, r)
	})
}

// ForgetSaves: that a program writes no `checkpoint` is known for as long as its directory is there.
func (tensorFlow) ForgetSaves(ctx context.Context, s store.Store) error {
	return eachFirst(ctx, s, func(r firstSave) error {
		of := r.Name + indexSuffix
		if r.Own {
			of = path.Dir(r.File)
		}
		return store.RemoveRecordOf(ctx, s, of, firstName(r.File))
	})
}

func (tensorFlow) IsFirst(ctx context.Context, s store.Store, c *format.Checkpoint) (bool, error) {
	r, err := readFirst(ctx, s, firstName(stateFileBeside(c.Name)))
	return r.Name == c.Name && !r.Own, err
}

// eachFirst calls f for each record.
func eachFirst(ctx context.Context, s store.Store, f func(firstSave) error) error {
	return store.EachRecord(ctx, s, firstDir, firstSave.about, f)
}

// readFirst returns the zero record where there is none, or none that can be read.
func readFirst(ctx context.Context, s store.Store, name string) (firstSave, error) {
	r, _, err := store.ReadRecord(ctx, s, name, firstSave.about)
	return r, err
}

func writeFirst(ctx context.Context, s store.Store, r firstSave) error {
	return store.WriteRecord(ctx, s, firstName(r.File), r)
}
