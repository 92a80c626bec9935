package runtime

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"holdfast/proto"
)

// CheckpointFormat says how checkpoints of one form are known to be complete.
// Package hdfsckpt looks at the files by these rules.
type CheckpointFormat struct {
	Name string // CheckpointSpec.format
	// Last has patterns (path.Match) of base names: the file that a save writes
	// last is of one of them.
	Last []string
	// Complete is, for a person, when one counts as complete.
	Complete string
}

// CheckpointFormats are the values of CheckpointSpec.format.
var CheckpointFormats = []CheckpointFormat{
	{
		// Saver, Checkpoint and CheckpointManager, with parameter servers too.
		Name: "tensorflow", Last: []string{"*.index", "checkpoint"},
		Complete: "PREFIX.index can be read, and every shard that it names is there with its length",
	},
	{
		// torch.save, since PyTorch 1.6.
		Name: "torch", Last: []string{"*.pt", "*.pth", "*.bin", "*.ckpt", "trainer_state.json"},
		Complete: "the archive's directory, at the file's end, can be read",
	},
	{
		// torch.distributed.checkpoint.
		Name: "dcp", Last: []string{".metadata"},
		Complete: ".metadata can be read, and every file that it names is there with its length",
	},
	{
		// Whatever else; see also marker and quiet.
		Name: "plain", Last: []string{"COMMITTED"},
		Complete: "the directory step-N has a file COMMITTED",
	},
	{
		// Hugging Face's Trainer; other ranks may come after the first's last file.
		Name: "huggingface", Last: []string{"trainer_state.json", "rng_state_*.pth"},
		Complete: "the directory checkpoint-N has trainer_state.json and its files of weights, with their lengths",
	},
}

// CompleteWhen tells a person when a directory's checkpoints count as complete;
// "" where the spec leaves it to the files.
func CompleteWhen(c *proto.CheckpointSpec) string {
	switch {
	case c.Marker != "":
		return "a file " + c.Marker + " is there"
	case c.QuietSeconds != 0:
		return fmt.Sprintf("nothing has changed for %g s", c.QuietSeconds)
	}
	for _, f := range CheckpointFormats {
		if f.Name == c.Format {
			return f.Complete
		}
	}
	return ""
}

// MayComplete reports whether a file that was written may be the last of a save,
// so that it is worth while to look for complete checkpoints.
func MayComplete(c *proto.CheckpointSpec, name string) bool {
	base := path.Base(name)
	if c.QuietSeconds > 0 {
		return true
	}
	if c.Marker != "" {
		ok, err := path.Match(c.Marker, base)
		return ok && err == nil
	}
	for _, f := range CheckpointFormats {
		if c.Format != "" && c.Format != f.Name {
			continue
		}
		for _, p := range f.Last {
			if ok, err := path.Match(p, base); ok && err == nil {
				return true
			}
		}
	}
	return false
}

func checkCheckpoint(c *proto.CheckpointSpec) error {
	var names []string
	for _, f := range CheckpointFormats {
		names = append(names, f.Name)
	}
	if c.Format != "" && !slices.Contains(names, c.Format) {
		return fmt.Errorf("the checkpoints of %s have the format %q, which is not known; there are %s", c.Path, c.Format, strings.Join(names, ", "))
	}
	own := c.Marker != "" || c.QuietSeconds != 0
	switch _, err := path.Match(c.Marker, ""); {
	case own && c.Format != "plain":
		return fmt.Errorf("the checkpoints of %s have a marker or a time of quiet, which plain ones only can have; the others are known to be complete by themselves: add format=plain, or leave them out", c.Path)
	case c.Marker != "" && c.QuietSeconds != 0:
		return fmt.Errorf("the checkpoints of %s are complete by a marker and by quiet: choose one of the two", c.Path)
	case err != nil || strings.Contains(c.Marker, "/"):
		return fmt.Errorf("the marker %q of the checkpoints of %s is no pattern of a file's name: write a name such as _SUCCESS, with * and ? where it varies", c.Marker, c.Path)
	case !(c.QuietSeconds >= 0 && c.QuietSeconds <= 24*3600):
		return fmt.Errorf("the checkpoints of %s are complete after %g s without a change: write a time of at most a day, such as 30s", c.Path, c.QuietSeconds)
	}
	return nil
}
