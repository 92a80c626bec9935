package hdfsckpt

import (
	"io"

	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/tfbundle"
)

// tensorflow finds the tensors of a TensorFlow checkpoint by its index.
func (t *Tensors) tensorflow(c *Checkpoint) ([]*Tensor, error) {
	x, err := ReadIndex(t.ctx, t.s, c.Name)
	if err != nil {
		return nil, err
	}
	file := func(shard int) string { return tfbundle.DataFile(c.Name, shard, x.Header.Shards) }
	open := func(shard int) (io.ReaderAt, error) { return t.open(file(shard)) }
	var all []*Tensor
	for _, e := range x.Tensors() {
		y := &Tensor{Name: e.Name, Kind: e.DType.Kind(), Shape: e.Shape, Bytes: x.Bytes(e), Pieces: max(1, len(e.Slices))}
		if !e.Partitioned() {
			y.File = file(e.Shard)
		}
		if y.Kind == tensor.StringKind {
			y.strings = func() ([]string, error) { return x.Strings(open, e) }
		} else {
			y.read = func() ([]byte, error) { return x.Read(open, e) }
		}
		all = append(all, y)
	}
	return all, nil
}
