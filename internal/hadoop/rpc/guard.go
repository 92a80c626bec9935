package rpc

import (
	"context"
	"net"
)

type guardKey struct{}

// Guarded returns a context for calls whose permission may end: may is called right before each
// attempt of a call is sent, from many goroutines, and its error fails the call. It must not
// block. When the context of a call that was sent ends before the answer has arrived, its
// connection fails or the process ends, the connection is reset, so that data that has not
// reached the server never will.
func Guarded(ctx context.Context, may func() error) context.Context {
	return context.WithValue(ctx, guardKey{}, may)
}

// Permitted returns the result of the function that Guarded was given; nil if there is none.
func Permitted(ctx context.Context) error {
	if may := guardOf(ctx); may != nil {
		return may()
	}
	return nil
}

func guardOf(ctx context.Context) func() error {
	may, _ := ctx.Value(guardKey{}).(func() error)
	return may
}

// dropUnsent says what becomes of what the kernel has not sent of a connection when that is
// closed, also by the end of the process: it is dropped, and the connection reset, or it is
// still sent (socket(7), SO_LINGER).
func dropUnsent(c net.Conn, drop bool) {
	sec := -1
	if drop {
		sec = 0
	}
	if tcp, ok := c.(interface{ SetLinger(sec int) error }); ok {
		_ = tcp.SetLinger(sec) // fails only when it is closed
	}
}
