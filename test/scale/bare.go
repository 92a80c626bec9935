package main

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"holdfast/am"
	"holdfast/am/server"
	"holdfast/proto"
)

// bare is a service that hears agents, and does nothing about it.
type bare struct {
	proto.UnimplementedAgentServiceServer
	there atomic.Int64
}

func (b *bare) Connect(stream proto.AgentService_ConnectServer) error {
	if _, err := stream.Recv(); err != nil {
		return err
	}
	b.there.Add(1)
	for {
		if _, err := stream.Recv(); err != nil {
			return err
		}
	}
}

// runBare serves as many idle agents as there are tasks: what a master's
// connections cost it whatever it does.
func runBare(ctx context.Context, j job) error {
	config, err := j.keys.Server()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := &bare{}
	grpcServer := grpc.NewServer(append(server.ManyConnections(), grpc.Creds(credentials.NewTLS(config)))...)
	context.AfterFunc(ctx, grpcServer.Stop)
	proto.RegisterAgentServiceServer(grpcServer, service)
	fmt.Println("address", listener.Addr())
	for i := range j.tasks {
		j.cluster.Launch(fmt.Sprintf("c%d", i+1))
	}
	go func() {
		for service.there.Load() < int64(j.tasks) && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		fmt.Println("running", j.tasks)
		am.Trim(ctx)
	}()
	return grpcServer.Serve(listener)
}
