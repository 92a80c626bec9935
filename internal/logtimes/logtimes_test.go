package logtimes

import (
	"math"
	"testing"
	"time"

	"holdfast/test/bound"
)

func at(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

// TestParts: what is found is what was written, and a pause counts for what comes after it.
func TestParts(t *testing.T) {
	var m Marker
	var file []byte
	for offset, s := range []float64{100, 100.4, 100.9, 101.0, 101.5, 900.2, 900.9, 901.3} {
		if m.Begins(at(s)) {
			file = AppendPart(file, int64(offset), at(s))
		}
	}
	if want := "0 100\n3 101\n5 900\n7 901\n"; string(file) != want {
		t.Fatalf("the parts are %q, want %q", file, want)
	}
	x := Parse(file)
	for offset, want := range map[int64]int64{0: 100, 2: 100, 3: 101, 4: 101, 5: 900, 6: 900, 7: 901, 1000: 901} {
		if got, ok := x.At(offset); !ok || got.Unix() != want {
			t.Errorf("offset %d was written at %d (%v), want %d", offset, got.Unix(), ok, want)
		}
	}
	for since, want := range map[float64]int64{0: 0, 100: 0, 100.9: 0, 101: 3, 101.9: 3, 102: 5, 500: 5, 900: 5, 901.5: 7, 902: math.MaxInt64} {
		if got := x.Since(at(since)); got != want {
			t.Errorf("since %v it is from %d, want %d", since, got, want)
		}
	}
	if _, ok := Parse(nil).At(5); ok || Parse(nil).Since(at(0)) != math.MaxInt64 {
		t.Error("an empty file has times")
	}
}

// TestWhatAWriterThatFailsLeaves: half a line, and parts that are written again.
func TestWhatAWriterThatFailsLeaves(t *testing.T) {
	x := Parse([]byte("0 100\n50 1050 105\n50 106\n\n-1 107\n60 90\n70 x\n80 110\n90 11"))
	if want := []part{{0, 100}, {50, 106}, {80, 110}}; len(x.parts) != 3 || x.parts[1] != want[1] || x.parts[2] != want[2] {
		t.Errorf("read is %v, want %v", x.parts, want)
	}
}

// TestTheFileStaysSmall: a task that writes all the time for a year.
func TestTheFileStaysSmall(t *testing.T) {
	var m Marker
	var file []byte
	const year = 365 * 24 * 3600
	for s := range year {
		if m.Begins(at(float64(1e9 + s))) {
			file = AppendPart(file, int64(s)<<10, at(float64(1e9+s)))
		}
		if s == 3600 && len(file) > 80<<10 {
			t.Errorf("after an hour it has %d bytes", len(file))
		}
	}
	if len(file) > 1<<20 {
		t.Errorf("after a year it has %d bytes", len(file))
	}
	// What was written within the last day is found to the hour or better, and never missed.
	x := Parse(file)
	since := at(1e9 + year - 24*3600)
	from, ok := x.At(x.Since(since))
	if d := since.Sub(from); !ok || from.After(since) || d > 3*time.Hour {
		t.Errorf("since a day ago begins %s earlier", d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("0 100\n50 105\n"))
	f.Add([]byte("9223372036854775807 9223372036854775807\n1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bound.Memory(t, len(text), 64)()
		x := Parse(text)
		from := x.Since(time.Unix(1, 0))
		if _, ok := x.At(from); ok != (len(x.parts) > 0) && from != math.MaxInt64 {
			t.Errorf("at %d: %v", from, ok)
		}
	})
}
