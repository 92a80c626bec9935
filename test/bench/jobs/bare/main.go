// Command bare is the least that an application master can be: it asks for
// containers as Holdfast does, runs a bash script in each, and replaces each
// that ends. It has nothing to upload, to localise, to prepare or to remember,
// and heartbeats all the time. What it takes is YARN's own floor.
//
//	bare TASKS MB SCRIPT STAGES
//
// The file STAGES tells when it had all containers for the first time, and what
// came before: lines of a name and a time in Unix milliseconds. It runs in an application master's container until it is killed. The Hadoop
// configuration is that of HADOOP_CONF_DIR.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
)

// pace is the time between heartbeats.
const pace = 10 * time.Millisecond

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: bare TASKS MB SCRIPT STAGES")
	}
	var s stages
	s.pass("process")
	tasks, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	mb, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return err
	}
	c, err := conf.Load("")
	if err != nil {
		return err
	}
	credentials, err := token.FromEnvironment()
	if err != nil {
		return err
	}
	retry := rpc.Retry{Limit: 5 * time.Second}
	master, err := yarn.NewMaster(c, credentials, retry)
	if err != nil {
		return err
	}
	defer master.Close()
	client, err := yarn.NewClient(c, yarn.Options{Retry: retry})
	if err != nil {
		return err
	}
	defer client.Close()
	if _, err := master.Register(ctx, yarn.Registration{Host: os.Getenv("NM_HOST")}); err != nil {
		return err
	}
	s.pass("registered")
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	containers, err := yarn.NewNodes(c, retry)
	if err != nil {
		return err
	}
	b := &bare{master: master, containers: containers, nodes: nodes, resource: yarn.Resource{MemoryMB: mb, VCores: 1}, script: args[2]}
	b.complete = func() error {
		s.pass("allocated")
		return os.WriteFile(args[3], []byte(s.String()), 0o644)
	}
	defer b.containers.Close()
	return b.keep(ctx, tasks)
}

// stages are lines of a name and a time.
type stages struct{ strings.Builder }

func (s *stages) pass(name string) { fmt.Fprintf(s, "%s %d\n", name, time.Now().UnixMilli()) }

type bare struct {
	master     *yarn.Master
	containers *yarn.Nodes
	nodes      []yarn.Node
	resource   yarn.Resource
	script     string
	complete   func() error // called once, when there are as many as are wanted
}

// keep keeps that many containers running.
func (b *bare) keep(ctx context.Context, tasks int) error {
	missing, complete := tasks, false
	h := yarn.Heartbeat{Requests: b.requests(missing)}
	failed := make(chan error)
	for {
		a, err := b.master.Allocate(ctx, h)
		if err != nil {
			return err
		}
		h = yarn.Heartbeat{}
		b.containers.Learn(a.NMTokens)
		missing -= len(a.Allocated)
		if missing == 0 && !complete {
			complete = true
			if err := b.complete(); err != nil {
				return err
			}
		}
		for _, c := range a.Allocated {
			go func() {
				launch := yarn.Launch{Command: "exec bash " + b.script}
				refused, err := b.containers.Start(ctx, c.Node, []yarn.Start{{Container: c, Launch: launch}})
				if err == nil {
					err = refused[c.ID]
				}
				if err != nil {
					failed <- err
				}
			}()
		}
		if len(a.Completed) > 0 {
			missing += len(a.Completed)
			h.Requests = b.requests(missing)
		}
		select {
		case err := <-failed:
			return err
		case <-time.After(pace):
		}
	}
}

// requests asks for containers on any node, each with an even share.
func (b *bare) requests(n int) []yarn.Request {
	share := (n + len(b.nodes) - 1) / len(b.nodes)
	racks := map[string]int{}
	list := []yarn.Request{b.request(yarn.Anywhere, n)}
	for _, node := range b.nodes {
		list = append(list, b.request(node.ID.Host, share))
		racks[node.Rack] = min(n, racks[node.Rack]+share)
	}
	for rack, n := range racks {
		list = append(list, b.request(rack, n))
	}
	return list
}

func (b *bare) request(place string, n int) yarn.Request {
	return yarn.Request{Priority: 1, Place: place, Resource: b.resource, Count: int32(n)}
}
