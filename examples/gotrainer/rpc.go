package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
)

// The parameter servers speak gRPC with JSON for messages: no generated code,
// and a person can read it on the wire.

// message is the request and the reply of every method; each uses what it needs.
type message struct {
	Step   int64     `json:"step,omitempty"`
	Limit  int64     `json:"limit,omitempty"`
	Done   bool      `json:"done,omitempty"`
	Values []float64 `json:"values,omitempty"`
}

type codec struct{}

func (codec) Name() string                    { return "json" }
func (codec) Marshal(v any) ([]byte, error)   { return json.Marshal(v) }
func (codec) Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

func init() { encoding.RegisterCodec(codec{}) }

const service = "gotrainer.Parameters"

type handler func(*server, context.Context, *message) (*message, error)

// description lists the methods of a parameter server.
func description() *grpc.ServiceDesc {
	d := &grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil)}
	for name, h := range map[string]handler{
		"Next":    (*server).next,
		"Pull":    (*server).pull,
		"Push":    (*server).push,
		"Save":    (*server).save,
		"Restore": (*server).restore,
	} {
		d.Methods = append(d.Methods, grpc.MethodDesc{
			MethodName: name,
			Handler: func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				in := &message{}
				if err := decode(in); err != nil {
					return nil, err
				}
				return h(srv.(*server), ctx, in)
			},
		})
	}
	return d
}

// peer is a parameter server as workers see it.
type peer struct {
	name string
	conn *grpc.ClientConn
}

// callLimit is how long a parameter server may take to answer.
const callLimit = 20 * time.Second

func dial(address string) (*peer, error) {
	conn, err := grpc.NewClient("passthrough:///"+address, // resolved anew at each connect
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.CallContentSubtype(codec{}.Name())),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.5, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}))
	if err != nil {
		return nil, fmt.Errorf("connecting to the parameter server %s: %w", address, err)
	}
	return &peer{address, conn}, nil
}

func (p *peer) call(ctx context.Context, method string, in *message) (*message, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out := &message{}
	if err := p.conn.Invoke(ctx, "/"+service+"/"+method, in, out); err != nil {
		return nil, fmt.Errorf("%s of parameter server %s: %w", method, p.name, err)
	}
	return out, nil
}
