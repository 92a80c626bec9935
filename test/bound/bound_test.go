package bound

import (
	"fmt"
	"testing"
)

// recorder is a test whose failures are only noted.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

var sink []byte

func TestMemory(t *testing.T) {
	for _, x := range []struct {
		n, allocates int
		fails        bool
	}{
		{0, 0, false},
		{10, 1 << 20, false},
		{10, 40 << 20, true},
		{1 << 20, 40 << 20, false},
		{1 << 20, 60 << 20, true},
	} {
		r := &recorder{TB: t}
		end := Memory(r, x.n, 16)
		sink = make([]byte, x.allocates)
		end()
		if (r.failed != "") != x.fails {
			t.Errorf("%d bytes for %d, 16 for each: %q", x.allocates, x.n, r.failed)
		}
	}
}
