package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"holdfast/am"
	"holdfast/proto"
)

// bare is a service that hears agents, and does nothing about it.
type bare struct {
	proto.UnimplementedAgentsServer
	there atomic.Int64
}

func (b *bare) Attend(stream proto.Agents_AttendServer) error {
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

// runBare serves as many idle agents as there are tasks, until the parent goes:
// what a master's connections cost it whatever it does.
func runBare(ctx context.Context, dir string, tasks int, pace time.Duration, profile string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	am.SaveMemory()
	keys, err := readKeys(dir, "master")
	if err != nil {
		return err
	}
	config, err := keys.Server()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	service := &bare{}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.ReadBufferSize(0), grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(64<<10))
	proto.RegisterAgentsServer(server, service)
	fmt.Println("address", listener.Addr())
	profiles, err := newProfiles(profile)
	if err != nil {
		return err
	}
	go func() { // ends with the parent, which ends the process
		defer server.Stop()
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			_, phase := fields(lines.Text())
			profiles.phase(phase)
		}
	}()
	go func() {
		cluster := &model{launches: make(chan string, tasks)}
		go cluster.launch(ctx, pace)
		for i := range tasks {
			cluster.Launch(fmt.Sprintf("c%d", i+1))
		}
		for service.there.Load() < int64(tasks) {
			time.Sleep(100 * time.Millisecond)
		}
		fmt.Println("running", tasks)
		for ctx.Err() == nil { // as a master does
			debug.FreeOSMemory()
			time.Sleep(5 * time.Second)
		}
	}()
	return server.Serve(listener)
}
