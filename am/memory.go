package am

import (
	"context"
	"os"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"holdfast/internal/proc"
)

// SaveMemory sets up this process's memory for a master: it goes with the number of
// tasks, and little of it changes.
func SaveMemory() { debug.SetGCPercent(50) }

// ManyConnections are a gRPC server's options where there may be thousands of
// connections, on which little is said. TLS has a buffer of its own for reading;
// windows that grow are measured by pings.
func ManyConnections() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ReadBufferSize(0), grpc.WriteBufferSize(writeBuffer),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		// Who connects and says nothing, or has gone without a word, is let go.
		grpc.ConnectionTimeout(handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle, Time: quiet, Timeout: handshake}),
	}
}

const (
	window      = 64 << 10 // bytes that an agent or client may send before they are read
	writeBuffer = 8 << 10

	handshake = 20 * time.Second // for a connection to become one, or to show that it is still one
	quiet     = 2 * time.Minute  // without a word, after which a connection has to show that
	idle      = 10 * time.Minute // without a call
)

// trimEvery is how often memory is given back to the system that a burst has left
// behind, as the start of many tasks does. The runtime would take minutes.
const trimEvery = 20 * time.Second

// Trim gives memory back to the system from time to time, until ctx ends.
func Trim(ctx context.Context) {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			debug.FreeOSMemory()
		}
	}
}

// residentBytes is the resident memory of this process; 0 if unknown.
func residentBytes() int64 {
	n, _ := proc.RSS(os.Getpid())
	return n
}
