// Package erasuretest tests reading and writing in erasure-coded directories of a
// real cluster. It has no code of its own.
package erasuretest
