package retain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
)

// Changes are those that one mount makes in a store, with what has to be retained before
// each. Its methods may be called by many goroutines.
type Changes struct {
	Store store.Store
	Area  Area // the mount's
	// Log is called with an error after which a change has been made all the same.
	Log func(name string, err error)

	retaining sync.Mutex // held while files of checkpoints are replaced or removed
	mu        sync.Mutex
	replacing map[string]bool // what may be checkpoints of several files, of which some were replaced
}

// Rename renames in the store. Where that replaces a part of a complete checkpoint, the
// checkpoint is retained.
func (c *Changes) Rename(ctx context.Context, from, to string) error {
	c.begin(ctx, to)
	if Concerns(to) {
		// The usual case: nothing is there.
		if err := c.renameNew(ctx, from, to); !errors.Is(err, syscall.EEXIST) {
			return err
		}
		c.retaining.Lock()
		defer c.retaining.Unlock()
		if err := Replacing(ctx, c.Store, c.Area, to); err != nil {
			return err
		}
		c.noteReplacing(to)
	}
	err := c.Store.Rename(ctx, from, to)
	if err != nil && Concerns(to) {
		err = errors.Join(err, NotReplaced(ctx, c.Store, to))
	}
	return err
}

// RenameNew is Rename that replaces nothing: EEXIST if the name is taken.
func (c *Changes) RenameNew(ctx context.Context, from, to string) error {
	c.begin(ctx, to)
	return c.renameNew(ctx, from, to)
}

// begin records that a file is about to get a name. It gets it all the same if that fails.
func (c *Changes) begin(ctx context.Context, name string) {
	if err := formats.BeginSave(ctx, c.Store, name, false); err != nil {
		c.Log(name, fmt.Errorf("recording a save: %w", err))
	}
}

func (c *Changes) renameNew(ctx context.Context, from, to string) error {
	err := c.Store.RenameNew(ctx, from, to)
	if err == nil && Concerns(to) {
		c.replaced(ctx, to)
	}
	return err
}

// noteReplacing notes that a file is being replaced of what may be a checkpoint.
func (c *Changes) noteReplacing(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range formats.OwnersOf(name) {
		if !o.InPlace || o.Checkpoint == name { // all of it
			continue
		}
		if c.replacing == nil {
			c.replacing = map[string]bool{}
		}
		c.replacing[o.Checkpoint] = true
	}
}

// replaced is called after a file has got a name that was free. It asks the store only
// about checkpoints of which files have been replaced. An error is logged: the file has its
// name already.
func (c *Changes) replaced(ctx context.Context, name string) {
	c.mu.Lock()
	replacing := len(c.replacing) > 0 && slices.ContainsFunc(formats.OwnersOf(name), func(o format.Owner) bool { return c.replacing[o.Checkpoint] })
	c.mu.Unlock()
	if !replacing {
		return
	}
	c.retaining.Lock()
	defer c.retaining.Unlock()
	if err := Replaced(ctx, c.Store, name); err != nil {
		c.Log(name, err)
	}
}

// Retain reports whether a file that is to be removed was retained instead.
func (c *Changes) Retain(ctx context.Context, name string) (bool, error) {
	if !Concerns(name) {
		return false, nil
	}
	c.retaining.Lock()
	defer c.retaining.Unlock()
	return Removing(ctx, c.Store, c.Area, name)
}
