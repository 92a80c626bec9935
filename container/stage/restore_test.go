package stage

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestRestore: from the first read of an attempt to the last one before it goes on.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Restore
		r.Begin()
		read := func(takes time.Duration) {
			began := time.Now()
			time.Sleep(takes)
			r.Read(began)
		}
		time.Sleep(time.Minute) // it imports its framework
		read(2 * time.Second)
		time.Sleep(time.Second)
		read(3 * time.Second)
		if got := r.Report(); got != nil {
			t.Errorf("while it may go on it is told: %v", got)
		}
		time.Sleep(time.Minute) // it computes
		r.End()
		read(time.Hour) // of something else
		if got := r.Report(); got.GetTookMs() != 6000 || got.GetAgeMs() != (time.Minute+time.Hour).Milliseconds() {
			t.Errorf("reading for 2 s and for 3 s, a second apart, is told as %v", got)
		}
		r.Begin()
		r.End()
		if got := r.Report(); got != nil {
			t.Errorf("an attempt that has read nothing has restored: %v", got)
		}
	})
}
