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

	"holdfast/hdfsckpt/store"
)

// What a save that was broken off has left is moved aside, so that a program
// which goes on from the highest number does not take it for a checkpoint.
//
//	.holdfast/aside/TIME-RANDOM/aside.json    what it was, and why it was moved
//	.holdfast/aside/TIME-RANDOM/files/NAME    the directory or file; NAME as it was
//
// It lies there for asideFor, and goes with the next start after that.
const (
	asideDir    = store.OwnDir + "/aside"
	asideRecord = "aside.json"
	asideFiles  = "files"
	asideFor    = 30 * 24 * time.Hour
)

// Aside is something that was moved aside.
type Aside struct {
	Name  string    `json:"name"` // where it was
	Kind  Kind      `json:"kind,omitempty"`
	Step  int64     `json:"step"` // NoStep if it is none of a checkpoint, or its name has none
	Why   string    `json:"why"`
	Moved time.Time `json:"moved"`
	Size  int64     `json:"size"` // bytes
	Where string    `json:"-"`    // where it lies, relative to the store's root
}

// until is when it goes.
func (a Aside) until() time.Time { return a.Moved.Add(asideFor) }

// moveAside moves a file or a directory with all that is in it, in one step.
func moveAside(ctx context.Context, s store.Store, a Aside) (Aside, error) {
	a.Moved = time.Now().UTC().Truncate(time.Second)
	random := make([]byte, 4)
	rand.Read(random) // never fails
	slot := path.Join(asideDir, a.Moved.Format("20060102T150405Z")+"-"+hex.EncodeToString(random))
	a.Where = path.Join(slot, asideFiles, a.Name)
	text, err := json.MarshalIndent(a, "", "  ")
	if err == nil {
		err = store.MkdirAll(ctx, s, path.Dir(a.Where), 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, s, path.Join(slot, asideRecord), append(text, '\n'), 0o644)
	}
	if err == nil {
		err = s.Rename(ctx, a.Name, a.Where)
	}
	if err != nil {
		if removeErr := removeAll(ctx, s, slot, 0); removeErr != nil && !vanished(removeErr) {
			err = errors.Join(err, removeErr)
		}
		return a, fmt.Errorf("cannot move %s aside: %w", a.Name, err)
	}
	return a, nil
}

// ListAside lists what was moved aside, the oldest first.
func ListAside(ctx context.Context, s store.Store) ([]Aside, error) {
	slots, err := s.List(ctx, asideDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Aside
	for _, e := range slots {
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

// readAside is false for what is not, or no longer, a thing that was moved.
func readAside(ctx context.Context, s store.Store, slot string) (a Aside, ok bool, err error) {
	text, err := store.ReadFile(ctx, s, path.Join(slot, asideRecord))
	if err == nil && (json.Unmarshal(text, &a) != nil || store.CheckChange("look at", a.Name) != nil) {
		return a, false, nil
	}
	if err == nil {
		a.Where = path.Join(slot, asideFiles, a.Name)
		_, err = s.Stat(ctx, a.Where)
	}
	if vanished(err) {
		return a, false, nil
	}
	return a, err == nil, err
}

// forgetAside removes what was moved aside long ago.
func forgetAside(ctx context.Context, s store.Store) error {
	all, err := ListAside(ctx, s)
	for _, a := range all {
		if time.Now().After(a.until()) {
			slot := strings.TrimSuffix(a.Where, "/"+path.Join(asideFiles, a.Name))
			if removeErr := removeAll(ctx, s, slot, 0); removeErr != nil && !vanished(removeErr) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}

// deepest bounds how deep removeAll goes.
const deepest = 64

// removeAll removes a directory below OwnDir with all that is in it.
func removeAll(ctx context.Context, s store.Store, dir string, depth int) error {
	if !strings.HasPrefix(dir, store.OwnDir+"/") || depth > deepest {
		return fmt.Errorf("cannot remove %s: it is not the store's own, or lies too deep", dir)
	}
	entries, err := store.ListAll(ctx, s, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.IsDir() {
			err = removeAll(ctx, s, name, depth+1)
		} else {
			err = s.Remove(ctx, name)
		}
		if err != nil && !vanished(err) {
			return err
		}
	}
	return s.Remove(ctx, dir)
}

// moveTorn has each checkpoint that is torn, and known to be one of its format,
// moved aside. Of those that were written to less than age ago, or while anything
// is being written, none is; 0 says that nobody writes. TensorFlow's stay: it
// goes by its file `checkpoint`, which never names them.
//
// What this user may not move is told, and keeps nothing from starting.
func moveTorn(ctx context.Context, s store.Store, age time.Duration) (moved []Aside, left []error, err error) {
	rule, err := readRule(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	list, err := (&lister{s: s, rule: rule, chosenFrom: true}).list(ctx)
	if err != nil {
		return nil, nil, err
	}
	list = slices.DeleteFunc(list, func(c Checkpoint) bool {
		return !c.surely || c.State != Torn && c.State != InProgress || c.Name == "." || age > 0 && (c.supposed || time.Since(c.Time) < age)
	})
	if len(list) == 0 {
		return nil, nil, nil
	}
	if age > 0 {
		units, err := keptUnits(ctx, s) // what is being removed is no save that was broken off
		if err != nil {
			return nil, nil, err
		}
		list = slices.DeleteFunc(list, func(c Checkpoint) bool {
			return slices.ContainsFunc(units, func(u *keptUnit) bool { return u.Name == c.Name && !u.Over })
		})
		if writing, err := anyWriting(ctx, s); err != nil || writing {
			return nil, nil, err
		}
	}
	for _, c := range list {
		a, err := moveAside(ctx, s, Aside{Name: c.Name, Kind: c.Kind, Step: c.Step, Why: c.Why, Size: c.Size})
		if vanished(err) {
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
		if err := Unseal(ctx, s, c.Name); err != nil {
			return moved, left, err
		}
	}
	return moved, left, nil
}
