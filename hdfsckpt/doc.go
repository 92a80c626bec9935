// Package hdfsckpt works on the checkpoints in a store (package store): it lists, seals,
// verifies, copies, compares, prunes and rolls them back, and repairs a store so that
// tasks can start from it after a loss. What a checkpoint is, package format knows; what
// programs remove or replace, package retain retains. What is recorded lies below
// store.OwnDir; nothing else is changed, but for pointers that are lost or cut off, lead to what is
// not whole, or were not written any more after the last save, and what a job's user asks for.
package hdfsckpt
