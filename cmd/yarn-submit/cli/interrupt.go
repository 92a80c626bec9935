package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"holdfast/client"
)

// interrupts are the SIGINT and SIGTERM that a command gets. The first ends the command's context,
// with which its work ends: what it then clears up has a context of its own. The next one ends
// the process at once.
type interrupts struct {
	cancel context.CancelFunc

	mu    sync.Mutex
	came  bool
	taken chan os.Signal // who handles them itself
}

type interruptsKey struct{}

// Interruptible returns the context of a command, which ends with the first SIGINT or SIGTERM.
// Signals are handled until the process ends.
func Interruptible(ctx context.Context) context.Context {
	i := &interrupts{}
	ctx, i.cancel = context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			i.take(s)
		}
	}()
	return context.WithValue(ctx, interruptsKey{}, i)
}

func (i *interrupts) take(s os.Signal) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.taken != nil:
		select {
		case i.taken <- s:
		default: // as many as anybody can wait for are there
		}
	case i.came:
		os.Exit(client.ExitInterrupted)
	default:
		i.came = true
		i.cancel()
	}
}

// Interrupted reports whether a signal has ended a context of Interruptible, or one made from it.
func Interrupted(ctx context.Context) bool {
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.came
}

// TakeInterrupts has signals sent to a channel, for a command that does not end with them, until
// they are given back.
func TakeInterrupts(ctx context.Context) (signals <-chan os.Signal, giveBack func()) {
	taken := make(chan os.Signal, 4)
	i, ok := ctx.Value(interruptsKey{}).(*interrupts)
	if !ok {
		return taken, func() {}
	}
	set := func(to chan os.Signal) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.taken = to
	}
	set(taken)
	return taken, func() { set(nil) }
}
