// Package limit bounds the memory that reading the files of checkpoints takes, whatever these
// say. All that this process looks into at the same time takes from one budget (Take). A parser
// whose input may describe more than it has counts that (Account).
//
// An input that exceeds a bound is not damaged: nothing is known of it. Its error is one that
// Exceeded returns, and IsExceeded finds; those who judge a checkpoint ask that first.
package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"syscall"

	"golang.org/x/sync/semaphore"
)

// Exceeded returns the error of a parser that meets a bound. The text says what there is and
// how much is read.
func Exceeded(format string, args ...any) error { return exceededError{fmt.Errorf(format, args...)} }

type exceededError struct{ error }

func (e exceededError) Unwrap() error { return e.error }

// Is has it be an EFBIG, too.
func (exceededError) Is(target error) bool { return target == syscall.EFBIG }

// IsExceeded reports whether something was not read because it exceeds a bound.
func IsExceeded(err error) bool { return errors.Is(err, syscall.EFBIG) }

const (
	least = 64 << 20 // bytes
	most  = 1 << 30  // as of a process whose memory has no limit
	share = 2        // of a process whose memory has one
)

// budget is how many bytes of memory all takes have together.
var budget = budgetOf(debug.SetMemoryLimit(-1))

// budgetOf is the budget of a process by its memory limit (GOMEMLIMIT), which the containers of
// application masters set.
func budgetOf(memory int64) int64 {
	if memory == math.MaxInt64 {
		return most
	}
	return min(max(memory/share, least), most)
}

var taken = semaphore.NewWeighted(budget)

// Take waits until so many bytes of the budget are free, and takes them; release gives them
// back. More than the budget has is Exceeded.
func Take(ctx context.Context, bytes int64) (release func(), err error) {
	bytes = max(bytes, 1)
	if bytes > budget {
		return nil, Exceeded("reading it takes up to %d bytes of memory, and %d are there for all that is looked into at the same time", bytes, budget)
	}
	if err := taken.Acquire(ctx, bytes); err != nil {
		return nil, err
	}
	return func() { taken.Release(bytes) }, nil
}

// Account counts the memory that a parser takes. It is for one goroutine.
type Account struct{ granted, spent int64 }

// NewAccount returns an account of so many bytes.
func NewAccount(bytes int64) *Account { return &Account{granted: bytes} }

// Spend counts n bytes more. Exceeded if that is more than the account has.
func (a *Account) Spend(n int64) error {
	if a.spent += n; a.spent > a.granted {
		return Exceeded("what it describes takes more than the %d bytes of memory that its length allows", a.granted)
	}
	return nil
}
