package proc

import (
	"os"
	"slices"
	"testing"
)

func TestParsePressure(t *testing.T) {
	for text, want := range map[string]float64{
		"some avg10=59.96 avg60=26.25 avg300=15.87 total=24970251809\nfull avg10=0.00 avg60=1.00 avg300=0.00 total=0\n": 0.2625,
		"full avg10=0.00 avg60=1.00 avg300=0.00 total=0\nsome avg10=0.00 avg60=0.00 avg300=0.00 total=0\n":              0,
	} {
		if got, err := ParsePressure([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "some\n", "some avg60=x\n", "full avg10=0.00 avg60=1.00\n"} {
		if got, err := ParsePressure([]byte(text)); err == nil {
			t.Errorf("%q: %v, and no error", text, got)
		}
	}
}

// TestPressureOfThisMachine: what the kernel tells is a share.
func TestPressureOfThisMachine(t *testing.T) {
	for _, r := range []Resource{OfCPU, OfMemory, OfIO} {
		if share, _, err := Pressure(r); err == nil && (share < 0 || share > 1) {
			t.Errorf("%s: %v", r, share)
		}
	}
	if load, err := Load(); err != nil || load < 0 {
		t.Errorf("load %v, %v", load, err)
	}
}

func TestThreads(t *testing.T) {
	if list, err := Threads(os.Getpid()); err != nil || !slices.Contains(list, os.Getpid()) {
		t.Errorf("threads %v, %v", list, err)
	}
}
