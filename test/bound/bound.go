// Package bound lets fuzz targets assert that what parses bytes from outside
// allocates in proportion to them, and not as much as the bytes claim.
package bound

import (
	"runtime/metrics"
	"testing"
)

// constant is what a parser may allocate whatever its input is: buffers, tables
// and compressors. It also covers what the runtime counts late, which is the
// spans that small objects are allocated from.
const constant = 32 << 20

// Memory begins to count what is allocated while n bytes from outside are
// parsed. The function that it returns ends that, and fails the test if it is more
// than perByte*n bytes and 32 MiB. What is freed meanwhile counts, and what other
// goroutines allocate: it is not for tests that run in parallel.
func Memory(t testing.TB, n, perByte int) (end func()) {
	before := allocated()
	return func() {
		t.Helper()
		if got, limit := allocated()-before, uint64(n)*uint64(perByte)+constant; got > limit {
			t.Errorf("an input of %d bytes makes it allocate %d bytes, more than %d", n, got, limit)
		}
	}
}

// allocated is how many bytes this process has allocated since its start.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
