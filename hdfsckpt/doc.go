// Package hdfsckpt knows the checkpoints in a store (package store): which files are
// of one, whether it is complete, and its step. It lists, seals, verifies, copies and
// prunes them, keeps what programs remove or replace, and makes a store safe to start
// from after a loss. What it records is below store.OwnDir; nothing else is changed,
// but for TensorFlow's state file and what a job's user asks for.
package hdfsckpt
