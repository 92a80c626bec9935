package am

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

// closable is TLS of which a call knows its connection: only that ends a Recv.
type closable struct {
	credentials.TransportCredentials
}

// connected is of a call who makes it, and its connection. It is all that is kept
// of what TLS tells: there may be thousands.
type connected struct {
	credentials.CommonAuthInfo
	party jobtls.Party
	conn  net.Conn
}

// AuthType implements credentials.AuthInfo.
func (connected) AuthType() string { return "tls" }

func (c closable) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
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
	return conn, connected{tls.CommonAuthInfo, party, raw}, nil
}

func (c closable) Clone() credentials.TransportCredentials {
	return closable{c.TransportCredentials.Clone()}
}

// connection gives what closes the connection of a call. An agent's stream has
// one of its own.
func connection(ctx context.Context) func() {
	if p, ok := peer.FromContext(ctx); ok {
		if c, ok := p.AuthInfo.(connected); ok {
			return func() { c.conn.Close() }
		}
	}
	return func() {}
}

// newServer makes the gRPC server of a job: agents may call Agents, each for its own
// container, clients Jobs, and nobody anything else.
func newServer(keys jobtls.Keys, log *logrus.Entry, agents proto.AgentServiceServer, jobs proto.JobServiceServer) (*grpc.Server, error) {
	tlsConfig, err := keys.Server()
	if err != nil {
		return nil, err
	}
	g := gate{keys, log}
	s := grpc.NewServer(append(ManyConnections(),
		grpc.Creds(closable{credentials.NewTLS(tlsConfig)}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := g.check(ctx, info.FullMethod, req); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := g.check(ss.Context(), info.FullMethod, nil); err != nil {
				return err
			}
			return handler(srv, ss)
		}),
	)...)
	proto.RegisterAgentServiceServer(s, agents)
	proto.RegisterJobServiceServer(s, jobs)
	return s, nil
}
