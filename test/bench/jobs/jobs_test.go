package jobs

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	want := time.UnixMicro(1763729876000042)
	for _, s := range []string{"1763729876.000042", "1763729876,000042"} {
		if got, err := parseTime(s); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "1763729876", "soon", "1.2.3"} {
		if got, err := parseTime(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}
