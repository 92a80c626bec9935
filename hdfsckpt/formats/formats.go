// Package formats has all forms of checkpoints that are known: one format.Format for each,
// in a file of its own; those of PyTorch and what is built on it are in package pytorch.
// formats.go has the list of them, and rule.go what follows from the list for a store's rule;
// nothing outside names one of them to decide by it.
package formats

import (
	"context"
	"errors"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
)

// All are the formats, in order of precedence: what one has claimed, those after it do
// not see. It is changed by tests only.
var All = []format.Format{
	pytorch.LightningFormat{}, pytorch.DistributedFormat{}, orbax{}, plain{}, savedModel{}, pytorch.DeepSpeedFormat{}, ray{},
	directory{}, pytorch.HuggingFaceFormat{}, pytorch.SafetensorsFormat{}, keras{}, xgboost{}, lightGBM{}, mxNet{},
	pytorch.TorchFormat{}, tensorFlow{},
}

// BeginSave records that a task makes a directory, or a file, if a format wants to know that.
func BeginSave(ctx context.Context, s store.Store, name string, dir bool) error {
	for _, r := range having[format.SaveRecorder]() {
		if r.BeginsSave(name, dir) {
			return r.BeginSave(ctx, s, name)
		}
	}
	return nil
}

// SavesEnded records that a program has ended by itself, so that what it has begun to
// save is as it should be.
func SavesEnded(ctx context.Context, s store.Store) error {
	var errs []error
	for _, r := range having[format.SaveRecorder]() {
		errs = append(errs, r.SavesEnded(ctx, s))
	}
	return errors.Join(errs...)
}

// ForgetSaves drops records of saves that are gone.
func ForgetSaves(ctx context.Context, s store.Store) error {
	var errs []error
	for _, r := range having[format.SaveRecorder]() {
		errs = append(errs, r.ForgetSaves(ctx, s))
	}
	return errors.Join(errs...)
}

// of returns a format by its name; nil if there is none.
func of(k format.Kind) format.Format {
	for _, f := range All {
		if f.Traits().Kind == k {
			return f
		}
	}
	return nil
}

// OwnersOf returns the checkpoints that a file may be a part of, by the file's name alone, in
// the order in which a search comes to them: the file is a part of the first that it finds.
func OwnersOf(file string) []format.Owner {
	if format.IsDiscarded(file) {
		return nil
	}
	var all []format.Owner
	for _, f := range All {
		for _, o := range f.Owners(file) {
			if !slices.ContainsFunc(all, func(has format.Owner) bool { return has.Checkpoint == o.Checkpoint }) {
				o.Beside = f.Traits().Beside
				all = append(all, o)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b format.Owner) int {
		return strings.Count(a.Checkpoint, "/") - strings.Count(b.Checkpoint, "/")
	})
	return all
}

// Pointers returns the formats that have a pointer.
func Pointers() []format.Pointer { return having[format.Pointer]() }

// Listers returns the formats whose checkpoints a file lists.
func Listers() []format.Lister { return having[format.Lister]() }

// Sweepers returns the formats whose broken saves leave files.
func Sweepers() []format.Sweeper { return having[format.Sweeper]() }

func having[T any]() []T {
	var some []T
	for _, f := range All {
		if t, ok := f.(T); ok {
			some = append(some, t)
		}
	}
	return some
}
