package bench

import (
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	ours, theirs := series{1, 3, 2}, series{10, 10, 4}
	r := ratios(ours, theirs)
	if got, want := r.format("", 2), "0.30 (0.10 to 0.50, n=3)"; got != want {
		t.Errorf("the ratios are %s, want %s", got, want)
	}
	if got := (series{1, 2}).median(); got != 1.5 {
		t.Errorf("the median of 1 and 2 is %v", got)
	}
	if got, want := aimed("x", r.median(), 0.25, ""), "x; aim at most 0.25: missed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (series{}).format(" s", 1), "nothing measured"; got != want {
		t.Errorf("nothing is %q", got)
	}
}

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
