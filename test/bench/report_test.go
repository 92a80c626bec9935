package bench

import "testing"

func TestReport(t *testing.T) {
	ours, theirs := Series{1, 3, 2}, Series{10, 10, 4}
	r := Ratios(ours, theirs)
	if got, want := r.Format("", 2), "0.30 (0.10 to 0.50, n=3)"; got != want {
		t.Errorf("the ratios are %s, want %s", got, want)
	}
	if got := (Series{1, 2}).Median(); got != 1.5 {
		t.Errorf("the median of 1 and 2 is %v", got)
	}
	if got, want := r.Aimed("", 2, 0.25), "0.30 (0.10 to 0.50, n=3); aim at most 0.25: missed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := r.Aimed("", 2, 0.3), "0.30 (0.10 to 0.50, n=3); aim at most 0.3: met"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Series{}).Aimed(" s", 1, 0.25), "nothing measured; aim at most 0.25 s: missed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := (Series{}).Format(" s", 1), "nothing measured"; got != want {
		t.Errorf("nothing is %q", got)
	}
}
