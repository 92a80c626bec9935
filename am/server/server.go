// Package server is the gRPC server of an application master: its port, mutual TLS with
// the job's own keys, who may call what, and the audit log of calls that change the job.
// The services themselves are in am/agents and am/status.
package server

import (
	"context"
	"fmt"
	"net"

	"github.com/sirupsen/logrus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// tlsCredentials is TLS that keeps the raw connection with each call: to close that is
// the only way to end a Recv from outside.
type tlsCredentials struct {
	credentials.TransportCredentials
}

// peerInfo is the caller of an RPC and its connection. The rest of the TLS state is
// dropped, since there may be thousands of connections.
type peerInfo struct {
	credentials.CommonAuthInfo
	party jobtls.Party
	conn  net.Conn
}

// AuthType implements credentials.AuthInfo.
func (peerInfo) AuthType() string { return "tls" }

func (c tlsCredentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	tls, ok := info.(credentials.TLSInfo)
	if !ok {
		return nil, nil, fmt.Errorf("%s gives no TLS", raw.RemoteAddr())
	}
	party, err := jobtls.Peer(tls.State)
	if err != nil {
		return nil, nil, err
	}
	return conn, peerInfo{tls.CommonAuthInfo, party, raw}, nil
}

func (c tlsCredentials) Clone() credentials.TransportCredentials {
	return tlsCredentials{c.TransportCredentials.Clone()}
}

// CloseConnection returns a function that closes the connection of a call. It may be
// called more than once. Each agent's stream has a connection of its own.
func CloseConnection(ctx context.Context) func() {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(peerInfo); ok {
			return func() { c.conn.Close() }
		}
	}
	return func() {}
}

// New returns the gRPC server of a job. Agents may call AgentService, each for its own
// container, clients may call JobService, and every other call is refused.
func New(keys jobtls.Keys, log *logrus.Entry, agents proto.AgentServiceServer, jobs proto.JobServiceServer) (*grpc.Server, error) {
	tlsConfig, err := keys.Server()
	if err != nil {
		return nil, err
	}
	a := authorizer{keys, log}
	s := grpc.NewServer(append(ManyConnections(),
		grpc.Creds(tlsCredentials{credentials.NewTLS(tlsConfig)}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := a.check(ctx, info.FullMethod, req); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ss, err := a.checkStream(ss, info.FullMethod)
			if err != nil {
				return err
			}
			return handler(srv, ss)
		}),
	)...)
	proto.RegisterAgentServiceServer(s, agents)
	proto.RegisterJobServiceServer(s, jobs)
	return s, nil
}
