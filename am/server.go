package am

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

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

// speaksFor is the container that an agent's stream is of, by its metadata. newServer
// lets no stream in whose agent has not the pass for that container.
func speaksFor(ctx context.Context) string {
	list := metadata.ValueFromIncomingContext(ctx, proto.HeaderContainer)
	if len(list) != 1 {
		return ""
	}
	return list[0]
}

// admitted reports whether an agent may speak for the container that it says it does.
func admitted(ctx context.Context, keys jobtls.Keys) bool {
	pass := metadata.ValueFromIncomingContext(ctx, proto.HeaderPass)
	return len(pass) == 1 && keys.Admits(speaksFor(ctx), []byte(pass[0]))
}

// newServer makes the gRPC server of a job: agents may call Agents, each for its own
// container, clients Jobs, and nobody anything else.
func newServer(keys jobtls.Keys, agents proto.AgentsServer, jobs proto.JobsServer) (*grpc.Server, error) {
	tlsConfig, err := keys.Server()
	if err != nil {
		return nil, err
	}
	allowed := map[string]jobtls.Party{
		proto.Agents_Attend_FullMethodName: jobtls.Agent,
		proto.Jobs_Status_FullMethodName:   jobtls.Client,
		proto.Jobs_Watch_FullMethodName:    jobtls.Client,
		proto.Jobs_Kill_FullMethodName:     jobtls.Client,
	}
	check := func(ctx context.Context, method string) error {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return status.Error(codes.Unauthenticated, "no peer")
		}
		caller, ok := p.AuthInfo.(connected)
		if !ok {
			return status.Error(codes.Unauthenticated, "no TLS")
		}
		if allowed[method] != caller.party {
			return status.Error(codes.PermissionDenied, fmt.Sprintf("a job's %s may not call %s", caller.party, method))
		}
		if caller.party == jobtls.Agent && !admitted(ctx, keys) {
			return status.Error(codes.PermissionDenied, fmt.Sprintf("this agent may not speak for the container %q", speaksFor(ctx)))
		}
		return nil
	}
	s := grpc.NewServer(append(ManyConnections(),
		grpc.Creds(closable{credentials.NewTLS(tlsConfig)}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := check(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := check(ss.Context(), info.FullMethod); err != nil {
				return err
			}
			return handler(srv, ss)
		}),
	)...)
	proto.RegisterAgentsServer(s, agents)
	proto.RegisterJobsServer(s, jobs)
	return s, nil
}
