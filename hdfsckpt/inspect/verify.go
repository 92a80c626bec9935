package inspect

import (
	"context"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Verified is the JSON of ckpt verify.
type Verified struct {
	Checkpoint
	OK       bool      `json:"ok"`
	Problems []Problem `json:"problems"`
}

// Problem is something that is wrong with a checkpoint in JSON.
type Problem struct {
	File   string `json:"file"`
	Tensor string `json:"tensor"`
	Offset *int64 `json:"offset"` // where the tensor or record begins; null for the file as a whole
	Text   string `json:"text"`
}

// Verify reads every byte of a checkpoint, which d describes, and checks it.
func Verify(ctx context.Context, s store.Store, c *format.Checkpoint, d Checkpoint, progress Progress) (Verified, error) {
	problems, err := hdfsckpt.Verify(ctx, s, *c, progress)
	v := Verified{Checkpoint: d, OK: err == nil && len(problems) == 0, Problems: []Problem{}}
	for _, p := range problems {
		shown := Problem{File: p.File, Tensor: p.Tensor, Text: p.Text}
		if p.Offset >= 0 {
			shown.Offset = &p.Offset
		}
		v.Problems = append(v.Problems, shown)
	}
	return v, err
}

// String says what is wrong, and where.
func (p Problem) String() string {
	f := format.Problem{File: p.File, Tensor: p.Tensor, Offset: -1, Text: p.Text}
	if p.Offset != nil {
		f.Offset = *p.Offset
	}
	return f.String()
}

// Agreed says of a checkpoint in which Verify has found nothing wrong what that shows.
func Agreed(c *format.Checkpoint) string {
	summed := c.Traits().Summed
	switch {
	case c.Manifest != nil || c.Contents() != nil && summed == "":
		return "all agree with " + VerifiedBy(c)
	case c.Contents() == nil || summed == format.NotSummed:
		return "file lengths are right; no checksums to compare"
	}
	return "file lengths are right, and " + summed + " agree with their checksums; no checksums of the other files to compare"
}

// VerifiedBy says what Verify compares a checkpoint with.
func VerifiedBy(c *format.Checkpoint) string {
	summed := c.Traits().Summed
	switch {
	case c.Manifest != nil:
		return "its manifest"
	case c.Contents() == nil || summed == format.NotSummed:
		return "their lengths; it is not sealed, and has no checksums"
	case summed != "":
		return "their lengths, and " + summed + " with their checksums; it is not sealed, and its other files have no checksums"
	}
	return "the checksums that it has in itself"
}
