package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestTakesHaveOneBudget: however many look into checkpoints at once, they take no more
// together than one budget, and what is larger than all of it is not let in.
func TestTakesHaveOneBudget(t *testing.T) {
	const fit = 4
	in, leave := make(chan struct{}, fit), make(chan struct{})
	var wg sync.WaitGroup
	for range fit {
		wg.Go(func() {
			release, err := Take(t.Context(), budget/fit)
			if err != nil {
				t.Error(err)
				return
			}
			in <- struct{}{}
			<-leave
			release()
		})
	}
	for range fit {
		<-in
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	if _, err := Take(ctx, budget/fit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("beside all of the budget there is room for more: %v", err)
	}
	cancel()
	close(leave)
	wg.Wait()
	release, err := Take(t.Context(), budget)
	if err != nil {
		t.Fatal(err)
	}
	release()
	if _, err := Take(t.Context(), budget+1); !IsExceeded(err) {
		t.Errorf("more than the budget is let in: %v", err)
	}
}

// TestBudgetFollowsTheContainer: GOMEMLIMIT is what the container leaves.
func TestBudgetFollowsTheContainer(t *testing.T) {
	for _, x := range []struct{ memory, want int64 }{
		{math.MaxInt64, most}, {64 << 20, least}, {300 << 20, 150 << 20}, {1 << 40, most},
	} {
		if got := budgetOf(x.memory); got != x.want {
			t.Errorf("with %d bytes of memory the budget is %d, want %d", x.memory, got, x.want)
		}
	}
}

// TestExceeded: an error is known by whatever is said around it.
func TestExceeded(t *testing.T) {
	a := NewAccount(10)
	if err := a.Spend(10); err != nil {
		t.Error(err)
	}
	err := fmt.Errorf("a file: %w", a.Spend(1))
	if !IsExceeded(err) || !errors.Is(err, syscall.EFBIG) {
		t.Errorf("an account of 10 bytes that has spent 11 says %v", err)
	}
	if IsExceeded(errors.New("it is cut off")) {
		t.Error("another error is taken for one")
	}
}
