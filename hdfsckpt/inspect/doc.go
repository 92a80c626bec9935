// Package inspect looks into checkpoints for those who show them: the ckpt commands and the
// pages of a job. What both say of a checkpoint, its files and its tensors is computed here,
// once, and has one form in JSON (docs/checkpoints.md).
package inspect
