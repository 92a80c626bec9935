package hdfsckpt

import (
	"strings"
	"testing"
)

// ReadStretches has Verify read stretches as small as n bytes on their own.
func ReadStretches(t testing.TB, n int64) {
	former := stretchSize
	stretchSize = n
	t.Cleanup(func() { stretchSize = former })
}

// String returns the lines together.
func (r Report) String() string { return strings.Join(r.Lines(), "\n") }
