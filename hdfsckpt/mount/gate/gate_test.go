package gate

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"holdfast/internal/hadoop/rpc"
)

// TestCloseCancelsWhatIsUnderWay: an operation that was admitted before Close ends at once:
// its context does, nothing more is sent under it, and Wait waits for it to leave.
func TestCloseCancelsWhatIsUnderWay(t *testing.T) {
	g := New(nil)
	ctx, leave, err := g.Enter()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ctx.Err(), rpc.Permitted(ctx)); err != nil {
		t.Fatalf("while the gate is open: %v", err)
	}
	if !g.Close(errors.New("generation 1 is over")) || g.Close(errors.New("another reason")) {
		t.Error("not the first of two calls has closed it, but another one")
	}
	if !errors.Is(ctx.Err(), context.Canceled) {
		t.Errorf("the context of what is under way: %v", ctx.Err())
	}
	if err := rpc.Permitted(ctx); !IsClosed(err) || !strings.Contains(err.Error(), "generation 1 is over") {
		t.Errorf("right before something is sent: %v", err)
	}
	if _, _, err := g.Enter(); !IsClosed(err) || !errors.Is(err, syscall.EIO) {
		t.Errorf("what comes later: %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Wait(over); !errors.Is(err, context.Canceled) {
		t.Errorf("it waits for nobody: %v", err)
	}
	leave()
	if err := g.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
