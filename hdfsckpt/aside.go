package hdfsckpt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// What a broken save has left is moved aside, so that a program that resumes from the
// highest step does not take it for a checkpoint.
//
//	.holdfast/aside/TIME-RANDOM/aside.json    what it was, and why it was moved
//	.holdfast/aside/TIME-RANDOM/files/NAME    the directory or file; NAME as it was
//
// It stays there for asideFor, and is removed by the next repair after that.
const (
	asideDir    = store.OwnDir + "/aside"
	asideRecord = "aside.json"
	asideFiles  = "files"
	asideFor    = 30 * 24 * time.Hour
)

// Aside is something that was moved aside.
type Aside struct {
	Name  string      `json:"name"` // where it was
	Kind  format.Kind `json:"kind,omitempty"`
	Step  int64       `json:"step"` // NoStep if it is no checkpoint, or its name has none
	Why   string      `json:"why"`
	Moved time.Time   `json:"moved"`
	Size  int64       `json:"size"` // bytes
	Where string      `json:"-"`    // where it lies, relative to the store's root
}

// until is when it is removed.
func (a Aside) until() time.Time { return a.Moved.Add(asideFor) }

// moveAside moves a file or a directory with all that is in it, in one step.
func moveAside(ctx context.Context, s store.Store, a Aside) (Aside, error) {
	a.Moved = time.Now().UTC().Truncate(time.Second)
	random := make([]byte, 4)
	rand.Read(random) // never fails
	entry := path.Join(asideDir, a.Moved.Format("20060102T150405Z")+"-"+hex.EncodeToString(random))
	a.Where = path.Join(entry, asideFiles, a.Name)
	text, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = store.MkdirAll(ctx, s, path.Dir(a.Where), 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, s, path.Join(entry, asideRecord), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = s.Rename(ctx, a.Name, a.Where)
	}
	if err != nil {
		if removeErr := store.RemoveOwn(ctx, s, entry); removeErr != nil && !store.Vanished(removeErr) {
			err = errors.Join(err, removeErr)
		}
		return a, fmt.Errorf("cannot move %s aside: %w", a.Name, err)
	}
	return a, nil
}

// ListAside lists what was moved aside, the oldest first.
func ListAside(ctx context.Context, s store.Store) ([]Aside, error) {
	entries, err := s.List(ctx, asideDir)
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Aside
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		a, ok, err := readAside(ctx, s, path.Join(asideDir, e.Name))
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, a)
		}
	}
	slices.SortFunc(all, func(a, b Aside) int {
		return cmp.Or(a.Moved.Compare(b.Moved), strings.Compare(a.Name, b.Name))
	})
	return all, nil
}

// readAside reads an entry; ok is false if it is none, or what was moved is gone.
func readAside(ctx context.Context, s store.Store, entry string) (a Aside, ok bool, err error) {
	text, err := store.ReadFile(ctx, s, path.Join(entry, asideRecord))
	if err == nil && (json.Unmarshal(text, &a) != nil || store.CheckChange("look at", a.Name) != nil) {
		return a, false, nil
	}
	if err == nil {
		a.Where = path.Join(entry, asideFiles, a.Name)
		_, err = s.Stat(ctx, a.Where)
	}
	if store.Vanished(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

// forgetAside removes what was moved aside long ago.
func forgetAside(ctx context.Context, s store.Store) error {
	all, err := ListAside(ctx, s)
	for _, a := range all {
		if time.Now().After(a.until()) {
			entry := strings.TrimSuffix(a.Where, "/"+path.Join(asideFiles, a.Name))
			if removeErr := store.RemoveOwn(ctx, s, entry); removeErr != nil && !store.Vanished(removeErr) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

// moveTorn moves checkpoints aside that are torn, and certainly of their format. With age
// 0 nobody writes to the store; otherwise those that were written to less than age ago
// stay, and all of them while anything is being written. Those of formats with a pointer
// stay: it never names them.
//
// What this user may not move is returned in left, and is no error. What is nested is of
// another store, and stays.
func moveTorn(ctx context.Context, s store.Store, age time.Duration, nested func(name string) bool) (moved []Aside, left []error, err error) {
	list, err := torn(ctx, s, age)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		if nested(c.Name) {
			continue
		}
		a, err := moveAside(ctx, s, Aside{Name: c.Name, Kind: c.Kind, Step: c.Step, Why: c.Why, Size: c.Size})
		if store.Vanished(err) {
			continue
		}
		if errors.Is(err, fs.ErrPermission) {
			left = append(left, err)
			continue
		}
		if err != nil {
			return moved, left, err
		}
		moved = append(moved, a)
		if err := manifest.Remove(ctx, s, c.Name); err != nil {
			return moved, left, err
		}
	}
	return moved, left, nil
}

// torn returns the checkpoints that moveTorn moves.
func torn(ctx context.Context, s store.Store, age time.Duration) ([]format.Checkpoint, error) {
	rule, err := format.ReadRule(ctx, s)
	if err != nil {
		return nil, err
	}
	list, err := format.Search{Rule: rule, Chosen: true}.List(ctx, s, formats.All)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(c format.Checkpoint) bool {
		return !c.Certain || c.State != format.Torn && c.State != format.InProgress || c.Name == "." ||
			age > 0 && (c.Inferred || time.Since(c.Time) < age)
	})
	if len(list) == 0 || age == 0 {
		return list, nil
	}
	retained, err := retain.Names(ctx, s) // what is being removed is no broken save
	if err != nil {
		return nil, err
	}
	if writing, err := writers.Writing(ctx, s); err != nil || writing {
		return nil, err
	}
	return slices.DeleteFunc(list, func(c format.Checkpoint) bool { return retained[c.Name] }), nil
}
