package hdfsckpt

import (
	"context"
	"testing"
)

// ListTemporary lists what List hides.
func ListTemporary(ctx context.Context, s Store, dir string) ([]Info, error) {
	return listTemporary(ctx, s, dir)
}

// ReadStretches has Verify read stretches as small as n bytes on their own.
func ReadStretches(t testing.TB, n int64) {
	former := stretchSize
	stretchSize = n
	t.Cleanup(func() { stretchSize = former })
}
