package torture

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// restored is what a program that starts gets.
type restored struct {
	id, step int64 // of the save; id 0: from scratch
}

// errNoState is a start from scratch: no file `checkpoint`, or no index that it
// names (latest_checkpoint returns None).
var errNoState = errors.New("a start from scratch")

// restore is what TensorFlow does: latest_checkpoint, then RestoreV2 of every
// tensor, with its checksum. An error is one that the program would fail with.
func restore(ctx context.Context, s store.Store, dir string) (restored, error) {
	text, err := store.ReadFile(ctx, s, path.Join(dir, tfbundle.StateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return restored{}, errNoState
	}
	if err != nil {
		return restored{}, err
	}
	state, err := tfbundle.ParseState(text)
	if err != nil {
		return restored{}, err
	}
	prefix := path.Join(dir, path.Base(state.Current))
	if _, err := s.Stat(ctx, tfbundle.IndexFile(prefix)); errors.Is(err, fs.ErrNotExist) {
		return restored{}, errNoState
	}
	return readBundle(ctx, s, prefix)
}

// readBundle reads every tensor of a checkpoint and sees that all are of one save.
func readBundle(ctx context.Context, s store.Store, prefix string) (restored, error) {
	x, err := formats.ReadIndex(ctx, s, prefix)
	if err != nil {
		return restored{}, err
	}
	got := restored{id: -1, step: -1}
	for i := range x.Entries {
		e := &x.Entries[i]
		b := make([]byte, e.Size)
		name := tfbundle.DataFile(prefix, e.Shard, x.Header.Shards)
		r, err := s.Open(ctx, name)
		if err != nil {
			return restored{}, fmt.Errorf("NOT_FOUND: %w", err)
		}
		_, err = r.ReadAt(b, e.Offset)
		r.Close()
		if err != nil {
			return restored{}, fmt.Errorf("DATA_LOSS: %s ends early: %w", name, err)
		}
		check := tfbundle.NewCheck(e)
		if _, err = check.Write(b); err == nil {
			err = check.End()
		}
		if err != nil {
			return restored{}, fmt.Errorf("DATA_LOSS: %s: %w", name, err)
		}
		v := int64(binary.LittleEndian.Uint64(b))
		if e.Name == "global_step" {
			got.step = v
			continue
		}
		if got.id >= 0 && got.id != v>>20 {
			return restored{}, fmt.Errorf("MIXED: %s is of save %d, others of %d", e.Name, v>>20, got.id)
		}
		got.id = v >> 20
	}
	return got, nil
}
