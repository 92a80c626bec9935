package main

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// server is a parameter server. The first one also counts the steps.
type server struct {
	o options

	mu     sync.Mutex
	values []float64 // nil: it has nothing yet
	step   int64
}

// serve runs a parameter server until it is told to stop.
func serve(ctx context.Context, o options) error {
	_, port, err := net.SplitHostPort(o.ps[o.index])
	if err != nil {
		return fmt.Errorf("the address of this parameter server: %w", err)
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listening as parameter server %d: %w", o.index, err)
	}
	g := grpc.NewServer()
	g.RegisterService(description(), &server{o: o})
	ended := make(chan struct{})
	defer func() { <-ended }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(ended)
		<-ctx.Done()
		g.Stop()
	}()
	fmt.Printf("ps %d listens on port %s\n", o.index, port)
	return g.Serve(l)
}

var errEmpty = status.Error(codes.FailedPrecondition, "this parameter server has nothing yet")

// next takes the next step, unless the limit is reached.
func (s *server) next(_ context.Context, in *message) (*message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		return nil, errEmpty
	}
	if s.step >= in.Limit {
		return &message{Step: s.step, Done: true}, nil
	}
	s.step++
	return &message{Step: s.step}, nil
}

func (s *server) pull(context.Context, *message) (*message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		return nil, errEmpty
	}
	return &message{Values: append([]float64(nil), s.values...)}, nil
}

func (s *server) push(_ context.Context, in *message) (*message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		return nil, errEmpty
	}
	for i := range min(len(s.values), len(in.Values)) {
		s.values[i] += in.Values[i]
	}
	return &message{}, nil
}

func (s *server) save(_ context.Context, in *message) (*message, error) {
	s.mu.Lock()
	values := append([]float64(nil), s.values...)
	s.mu.Unlock()
	if len(values) == 0 {
		return nil, errEmpty
	}
	if err := writeShard(s.o.dir, in.Step, s.o.index, shard{Step: in.Step, Values: values, Padding: padding(s.o.padding)}); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &message{}, nil
}

func (s *server) restore(_ context.Context, in *message) (*message, error) {
	sh := shard{Values: make([]float64, s.o.values)}
	if in.Step > 0 {
		var err error
		if sh, err = readShard(s.o.dir, in.Step, s.o.index); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values, s.step = sh.Values, in.Step
	fmt.Printf("ps %d restored step %d\n", s.o.index, in.Step)
	return &message{}, nil
}
