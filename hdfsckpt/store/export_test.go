package store

import "holdfast/internal/hadoop/hdfs"

// SharedOf returns what the stores of an Opener share.
func SharedOf(o *Opener) *hdfs.Shared { return o.hdfs.Shared }
