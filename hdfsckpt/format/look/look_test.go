package look

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestLooksHaveOneBudget: however many look into checkpoints at once, and however
// large their files are, they take no more together than one budget.
func TestLooksHaveOneBudget(t *testing.T) {
	for name, x := range map[string]struct {
		size int64
		fit  int
	}{"four at once": {budget / cost / 4, 4}, "a larger one alone": {1 << 40, 1}} {
		t.Run(name, func(t *testing.T) {
			in, leave := make(chan struct{}, x.fit), make(chan struct{})
			var wg sync.WaitGroup
			for range x.fit {
				wg.Go(func() {
					if err := Budgeted(t.Context(), x.size, func() error { in <- struct{}{}; <-leave; return nil }); err != nil {
						t.Error(err)
					}
				})
			}
			for range x.fit {
				<-in
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if err := Budgeted(ctx, 1, func() error { return nil }); err == nil {
				t.Errorf("beside %d of %d bytes there is room for one more", x.fit, x.size)
			}
			cancel()
			close(leave)
			if err := Budgeted(t.Context(), 1, func() error { return nil }); err != nil {
				t.Error(err)
			}
			wg.Wait()
		})
	}
}
