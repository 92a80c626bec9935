package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/internal/backoff"
)

func TestWaitsDouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backoff.New(100*time.Millisecond, 500*time.Millisecond)
		for _, due := range []time.Duration{100, 200, 400, 500, 500} {
			due *= time.Millisecond
			began := time.Now()
			if !b.Wait(t.Context()) {
				t.Fatal("the context has not ended")
			}
			if took := time.Since(began); took < due/2 || took >= due*3/2 {
				t.Errorf("in place of %s it waited %s", due, took)
			}
		}
	})
}

func TestTheContextEndsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if backoff.New(time.Hour, time.Hour).Wait(ctx) || time.Since(began) != time.Second {
			t.Errorf("it waited %s", time.Since(began))
		}
		if backoff.Sleep(ctx, 0) {
			t.Error("a context that has ended goes on")
		}
	})
}
