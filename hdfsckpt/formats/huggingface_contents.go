package formats

import (
	"context"
	"fmt"
	"path"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// trainerOptimizer is the file of the optimizer's state.
const trainerOptimizer = "optimizer.pt"

// Tensors are those of the model, by their names in it, and those of the optimizer, with
// "optimizer." before; of FSDP and DeepSpeed those of their directories.
func (huggingFace) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	var all []*format.Tensor
	var inner format.Checkpoint
	for _, f := range c.Files {
		dir, base := path.Split(f.Name)
		var more []*format.Tensor
		var err error
		switch dir = path.Clean(dir); {
		case dir != c.Name && base == torchfile.MetadataFile:
			more, err = distributed{}.Tensors(o, &format.Checkpoint{Name: dir})
		case dir != c.Name && deepSpeedDir.MatchString(path.Base(dir)):
			inner.Files = append(inner.Files, f)
		case dir != c.Name:
		case base == trainerOptimizer:
			more, err = torchTensors(o, f.Name, "optimizer.")
		case weightsFile.MatchString(base) && path.Ext(base) == safetensorsSuffix:
			more, err = safetensorsOf(o, f.Name)
		case weightsFile.MatchString(base):
			more, err = torchTensors(o, f.Name, "")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, more...)
	}
	more, err := deepSpeed{}.Tensors(o, &inner)
	return append(all, more...), err
}

// Parts are the records of what torch.save wrote, of FSDP those in its directories; files of safetensors have no checksums.
func (huggingFace) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	parts, problems, err := savedParts(ctx, s, c.Files)
	for _, f := range c.Files {
		if dir, base := path.Split(f.Name); err == nil && base == torchfile.MetadataFile {
			var more []format.Part
			var wrong []format.Problem
			more, wrong, err = distributed{}.Parts(ctx, s, &format.Checkpoint{Name: path.Clean(dir)})
			parts, problems = append(parts, more...), append(problems, wrong...)
		}
	}
	return parts, problems, err
}

// savedParts finds the records of all files that torch.save wrote, as far as they are archives.
func savedParts(ctx context.Context, s store.Store, files []format.File) (parts []format.Part, problems []format.Problem, err error) {
	for _, f := range files {
		if _, saved := torchSuffixes[suffixOf(path.Base(f.Name))]; !saved {
			continue
		}
		h, err := openTorch(ctx, s, f.Name)
		if store.Vanished(err) || err == nil && !h.archive {
			continue // its state says so; of old files nothing can be said
		}
		if err != nil {
			return nil, nil, err
		}
		more, wrong, err := archiveParts(ctx, s, f.Name, 0, -1, "")
		if err != nil {
			return nil, nil, err
		}
		parts, problems = append(parts, more...), append(problems, wrong...)
	}
	return parts, problems, nil
}
