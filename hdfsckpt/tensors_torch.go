package hdfsckpt

import (
	"fmt"
	"path"

	"holdfast/hdfsckpt/torchfile"
)

// torch finds the tensors of a file of torch.save.
func (t *Tensors) torch(c *Checkpoint) ([]*Tensor, error) {
	if c.State == Unchecked {
		return nil, fmt.Errorf("its tensors cannot be shown: %s", c.Why)
	}
	r, err := t.open(c.Name)
	if err != nil {
		return nil, err
	}
	f, err := torchfile.Open(r, r.Size())
	if err != nil {
		return nil, err
	}
	var all []*Tensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		name := x.Name
		if name == "" { // the tensor is all there is
			name = path.Base(c.Name)
		}
		all = append(all, &Tensor{
			Name: name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Bytes(), File: c.Name, Pieces: 1,
			read: func() ([]byte, error) { return f.Read(x) },
		})
	}
	return all, nil
}

// distributed finds the tensors of a distributed checkpoint of PyTorch.
func (t *Tensors) distributed(c *Checkpoint) ([]*Tensor, error) {
	m, err := readMetadata(t.ctx, t.s, c.Name)
	if err != nil {
		return nil, err
	}
	var all []*Tensor
	for i := range m.Items {
		x := &m.Items[i]
		if !x.Tensor {
			continue
		}
		y := &Tensor{
			Name: x.Name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Bytes(), Pieces: len(x.Chunks),
			read: func() ([]byte, error) { return x.Read(t.openBelow(c.Name)) },
		}
		if len(x.Chunks) == 1 {
			y.File = path.Join(c.Name, x.Chunks[0].File)
		}
		all = append(all, y)
	}
	return all, nil
}
