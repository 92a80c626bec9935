package runtime

import (
	"holdfast/hdfsckpt/format"
	"holdfast/proto"
)

// CheckpointRule returns what a spec says about the checkpoints of a directory.
func CheckpointRule(c *proto.CheckpointSpec) format.Rule {
	return format.Rule{Format: format.Kind(c.Format), Marker: c.Marker, Quiet: c.QuietSeconds}
}
