package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// ManyConnections returns the options of a gRPC server that holds thousands of mostly
// idle connections. TLS has a read buffer of its own, and static windows save the pings
// by which gRPC would measure larger ones.
func ManyConnections() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ReadBufferSize(0), grpc.WriteBufferSize(writeBuffer),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(window),
		// Connections whose other end never completes the handshake, or vanishes, are closed.
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: pingAfter, Timeout: handshakeTimeout}),
	}
}

const (
	window      = 64 << 10 // bytes that an agent or client may send before they are read
	writeBuffer = 8 << 10  // bytes

	handshakeTimeout = 20 * time.Second // for a handshake, or for the answer to a ping
	pingAfter        = 2 * time.Minute  // without traffic
	maxIdle          = 10 * time.Minute // without a call
)
