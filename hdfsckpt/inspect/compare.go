package inspect

import (
	"context"
	"errors"
	"fmt"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Change is a tensor that differs between two checkpoints in JSON.
type Change struct {
	Name   string   `json:"name"`
	Change string   `json:"change"` // added, removed, reshaped, changed, or not compared
	From   string   `json:"from"`
	To     string   `json:"to"`
	Norm   *float64 `json:"norm"`        // of the difference
	Former *float64 `json:"former_norm"` // of the first
	Why    string   `json:"why"`         // it was not compared
}

// Limits bound the memory that looking into a checkpoint takes, in bytes.
type Limits struct {
	Index  int64 // of an index or the like: format.OpenTensorsWithin
	Tensor int64 // of a tensor that has to be put together: format.Tensor.Rows
}

// Compare compares the tensors of two checkpoints. Those that are the same are left out.
func Compare(ctx context.Context, s store.Store, from, to *format.Checkpoint, limits Limits, progress Progress) ([]Change, error) {
	a, err := format.OpenTensorsWithin(ctx, s, from, limits.Index)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	b, err := format.OpenTensorsWithin(ctx, s, to, limits.Index)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	return CompareTensors(ctx, a, b, func(string) bool { return true }, limits.Tensor, progress)
}

// CompareTensors compares those tensors of two checkpoints whose names are selected. limit is that
// of Limits.Tensor.
func CompareTensors(ctx context.Context, a, b *format.Tensors, selected func(name string) bool, limit int64, progress Progress) ([]Change, error) {
	m := meter{ctx: ctx, progress: progress}
	for _, x := range a.All() {
		if y := b.Find(x.Name); y != nil && selected(x.Name) {
			m.total += x.Bytes + y.Bytes
		}
	}
	changes, err := hdfsckpt.Diff(a, b, hdfsckpt.DiffOptions{Limit: limit, Select: selected, Progress: m.count})
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	all := make([]Change, len(changes))
	for i, c := range changes {
		all[i] = describeChange(c)
	}
	return all, nil
}

func describeChange(c hdfsckpt.Change) Change {
	kind := func(t *format.Tensor) string {
		if t == nil {
			return ""
		}
		return fmt.Sprintf("%s %v", t.Kind, t.Shape)
	}
	r := Change{Name: c.Name, From: kind(c.From), To: kind(c.To), Why: c.NotCompared}
	switch {
	case c.Added:
		r.Change = "added"
	case c.Removed:
		r.Change = "removed"
	case c.Reshaped:
		r.Change = "reshaped"
	case c.NotCompared != "":
		r.Change = "not compared"
	default:
		r.Change = "changed"
		r.Norm, r.Former = finite(c.Norm), finite(c.FormerNorm)
	}
	return r
}
