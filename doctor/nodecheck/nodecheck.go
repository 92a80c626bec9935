// Package nodecheck is the application master of `yarn-submit doctor --cluster`: it
// runs one short container on every node, or on the named ones, and collects their
// findings.
//
// Containers write their findings to a file in the check's directory on HDFS,
// nodes/CONTAINER.json. One that cannot do so prints them to its standard error: the
// NodeManager reports its end as the container's diagnostics
// (yarn.nodemanager.container.stderr.pattern). All findings together are written to
// Result at the end.
package nodecheck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/doctor/check"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

const (
	// ApplicationType is the application type on YARN.
	ApplicationType = "HOLDFAST-DOCTOR"
	// EnvNodes names the hosts, separated by commas; empty: all. EnvDirectory is
	// the URI of the check's directory, EnvUser the submitting user.
	EnvNodes     = "HOLDFAST_NODES"
	EnvDirectory = "HOLDFAST_DOCTOR_DIRECTORY"
	EnvUser      = "HOLDFAST_DOCTOR_USER"
	// EnvImage is the image in which the containers are to run, and EnvRuntime its
	// runtime; empty: in none.
	EnvImage   = "HOLDFAST_DOCTOR_IMAGE"
	EnvRuntime = "HOLDFAST_DOCTOR_RUNTIME"
	// Result is a file in the check's directory: []check.Finding as JSON.
	Result   = "findings.json"
	nodesDir = "nodes"

	// MasterCommand and command are what the containers run.
	MasterCommand = "exec ./yarn-submit doctor-am 1><LOG_DIR>/doctor-am.log 2><LOG_DIR>/stderr"
	command       = "exec ./yarn-submit doctor-node 1><LOG_DIR>/doctor-node.log 2><LOG_DIR>/stderr"
)

// Intervals and limits of a check.
const (
	beat        = 100 * time.Millisecond
	allocateFor = 20 * time.Second // until a node without a container is given up
	lookFor     = 60 * time.Second // until a container that runs is
	// startsAtOnce bounds the NodeManagers that are asked at a time.
	startsAtOnce = 64
)

// Container is the size of a container that checks a node.
var Container = yarn.Resource{MemoryMB: 256, VCores: 1}

// Config configures Run.
type Config struct {
	Conf        *conf.Conf
	Credentials *token.Credentials // of the AM's container
	Directory   string             // URI
	User        string             // who submitted
	Nodes       []string           // hosts; empty: all
	Host        string             // of the AM
	Image       yarn.Image         // of the containers
	Resources   []yarn.LocalResource
}

// allocator is what allots containers: *yarn.Master.
type allocator interface {
	Allocate(ctx context.Context, h yarn.Heartbeat) (*yarn.Answer, error)
}

// starter is what starts containers: *yarn.Nodes. Its methods are called by many goroutines.
type starter interface {
	Learn(tokens []yarn.NMToken)
	Start(ctx context.Context, node yarn.NodeID, list []yarn.Start) (map[yarn.ContainerID]error, error)
}

// nodeCheck is the state of Run.
type nodeCheck struct {
	Config
	master allocator
	nodes  starter
	dir    store.Store

	queue    yarn.Queue
	waiting  map[string]int // hosts, and how many containers are still to come there
	running  map[yarn.ContainerID]yarn.NodeID
	failed   chan failedStart
	findings []check.Finding
}

// failedStart is a container that was not started.
type failedStart struct {
	id  yarn.ContainerID
	err error
}

// Run checks the nodes and reports the end to the ResourceManager.
func Run(ctx context.Context, cfg Config) error {
	r := newNodeCheck(cfg)
	var err error
	if r.dir, err = store.Open(ctx, cfg.Directory, cfg.Conf); err != nil {
		return err
	}
	defer r.dir.Close()
	if err := store.MkdirAll(ctx, r.dir, nodesDir, 0o700); err != nil {
		return err
	}
	master, err := yarn.NewMaster(cfg.Conf, cfg.Credentials, rpc.Retry{Limit: 10 * time.Second})
	if err != nil {
		return err
	}
	defer master.Close()
	nodes, err := yarn.NewNodes(cfg.Conf, rpc.Retry{Limit: 5 * time.Second})
	if err != nil {
		return err
	}
	defer nodes.Close()
	r.master, r.nodes = master, nodes
	client, err := yarn.NewClient(cfg.Conf, yarn.Options{Credentials: cfg.Credentials, Retry: rpc.Retry{Limit: 10 * time.Second}})
	if err != nil {
		return err
	}
	defer client.Close()
	reg, err := master.Register(ctx, yarn.Registration{Host: cfg.Host})
	if err != nil {
		return err
	}
	if r.queue, err = client.Queue(ctx, reg.Queue); err != nil { // else nothing is known of its labels
		r.queue = yarn.Queue{Name: reg.Queue, Labels: []string{"*"}}
	}
	list, err := client.Nodes(ctx)
	if err == nil {
		err = r.checkNodes(ctx, list)
	}
	if err == nil {
		err = r.report(ctx)
	}
	final, why := yarn.FinalSucceeded, ""
	if err != nil {
		final, why = yarn.FinalFailed, err.Error()
	}
	return errors.Join(err, master.Finish(ctx, final, why, ""))
}

func newNodeCheck(cfg Config) *nodeCheck {
	return &nodeCheck{Config: cfg, waiting: map[string]int{}, running: map[yarn.ContainerID]yarn.NodeID{}, failed: make(chan failedStart, startsAtOnce)}
}

// checkNodes requests a container on each node and waits for the findings.
func (r *nodeCheck) checkNodes(ctx context.Context, list []yarn.Node) error {
	ctx, cancel := context.WithCancel(ctx)
	var starts errgroup.Group
	defer func() { cancel(); _ = starts.Wait() }()
	places := make(chan struct{}, startsAtOnce)
	ask := r.ask(list)
	begin := time.Now()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for len(r.running) > 0 || len(r.waiting) > 0 {
		a, err := r.master.Allocate(ctx, yarn.Heartbeat{Requests: ask})
		if err != nil {
			return err
		}
		ask = nil
		r.nodes.Learn(a.NMTokens)
		for _, c := range a.Allocated {
			start := r.take(c)
			starts.Go(func() error {
				places <- struct{}{}
				defer func() { <-places }()
				if err := r.start(ctx, c.Node, start); err != nil {
					select {
					case r.failed <- failedStart{c.ID, err}:
					case <-ctx.Done():
					}
				}
				return nil
			})
		}
		for _, c := range a.Completed {
			if node, ours := r.running[c.ID]; ours {
				delete(r.running, c.ID)
				r.collect(ctx, node.Host, c)
			}
		}
		age := time.Since(begin)
		if age > allocateFor {
			for host := range r.waiting {
				r.bad(host, fmt.Sprintf("YARN has given no container there for %s: the node or the queue is full, or the queue may not use it (node labels)", allocateFor))
			}
			clear(r.waiting)
		}
		if age > lookFor {
			for _, node := range r.running {
				r.bad(node.Host, fmt.Sprintf("the container there has not finished within %s", lookFor))
			}
			return nil
		}
		select {
		case <-ticker.C:
		case f := <-r.failed:
			if node, ours := r.running[f.id]; ours {
				delete(r.running, f.id)
				r.bad(node.Host, f.err.Error())
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// ask names each node that was asked for, and lets the scheduler give no other. Nodes of a
// partition are asked for with its label, and a priority of their own: the scheduler keeps one
// partition for each.
func (r *nodeCheck) ask(list []yarn.Node) []yarn.Request {
	places := map[string]map[string]int32{} // how many containers at which place, by label
	for _, n := range list {
		host := n.ID.Host
		if len(r.Nodes) > 0 && !slices.Contains(r.Nodes, host) {
			continue
		}
		if !n.Running() {
			level := check.Bad
			if n.Decommissioned() {
				level = check.Note // as its administrators wanted
			}
			r.findings = append(r.findings, check.Finding{Node: host, Subject: "container", Level: level,
				Text: strings.TrimSpace(fmt.Sprintf("YARN does not use the node: it is %s %s", n.State, n.Health))})
			continue
		}
		if !r.queue.MayUse(n.Label) || !r.queue.HasRoom(n.Label) {
			r.findings = append(r.findings, check.Finding{Node: host, Subject: "container", Level: check.Note,
				Text: fmt.Sprintf("it was not looked at: it has the label %q, and the queue %q may not use such nodes (accessible-node-labels)", n.Label, r.queue.Name)})
			continue
		}
		if places[n.Label] == nil {
			places[n.Label] = map[string]int32{}
		}
		for _, place := range []string{yarn.Anywhere, n.Rack, host} {
			places[n.Label][place]++
		}
		r.waiting[host]++
	}
	for _, host := range r.Nodes {
		if !slices.ContainsFunc(list, func(n yarn.Node) bool { return n.ID.Host == host }) {
			var known []string
			for _, n := range list {
				known = append(known, n.ID.Host)
			}
			r.bad(host, "the ResourceManager knows no such node; it knows "+strings.Join(known, ", "))
		}
	}
	var requests []yarn.Request
	for i, label := range slices.Sorted(maps.Keys(places)) {
		for _, place := range slices.Sorted(maps.Keys(places[label])) {
			requests = append(requests, yarn.Request{Priority: int32(i + 1), Place: place, Resource: Container, Label: label,
				Count: places[label][place], Strict: r.waiting[place] == 0})
		}
	}
	return requests
}

func (r *nodeCheck) bad(node, text string) {
	r.findings = append(r.findings, check.Finding{Node: node, Subject: "container", Level: check.Bad, Text: text})
}

// take has a container count as one that runs, and returns how it is started.
func (r *nodeCheck) take(c yarn.Container) yarn.Start {
	host := c.Node.Host
	if r.waiting[host]--; r.waiting[host] <= 0 {
		delete(r.waiting, host)
	}
	r.running[c.ID] = c.Node
	own := r.Credentials.Clone()
	own.RemoveMasters()
	own.Secrets = map[string][]byte{proto.SecretConf: own.Secrets[proto.SecretConf]}
	return yarn.Start{Container: c, Launch: yarn.Launch{
		Resources: r.Resources, Command: command, Credentials: own,
		Environment: map[string]string{EnvDirectory: r.Directory, EnvUser: r.User, "HADOOP_USER_NAME": r.User},
	}.In(r.Image)}
}

// start starts a container. A node may take long to answer, so each has a goroutine.
func (r *nodeCheck) start(ctx context.Context, node yarn.NodeID, s yarn.Start) error {
	failed, err := r.nodes.Start(ctx, node, []yarn.Start{s})
	if err == nil {
		err = failed[s.Container.ID]
	}
	return err
}

// collect reads the findings of a container that has ended.
func (r *nodeCheck) collect(ctx context.Context, host string, c yarn.Completed) {
	text, err := store.ReadFile(ctx, r.dir, path.Join(nodesDir, c.ID.String()+".json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		text = printed(c.Diagnostics)
	case err != nil:
		r.bad(host, err.Error())
		return
	}
	var found []check.Finding
	if json.Unmarshal(text, &found) != nil || len(found) == 0 {
		if r.Image.Name != "" && c.Exit == yarn.ExitInvalid {
			r.bad(host, fmt.Sprintf("the NodeManager did not start the image %s, and only its log says why: see that yarn.nodemanager.runtime.linux.allowed-runtimes there names the image's runtime", r.Image.Name))
			return
		}
		r.bad(host, fmt.Sprintf("the container there ended with %d and told nothing: %s", c.Exit, cmp.Or(yarn.Reason(c.Diagnostics), "YARN gave no reason")))
		return
	}
	for _, f := range found {
		f.Node = host
		r.findings = append(r.findings, f)
	}
}

// printed finds the line of findings among a container's diagnostics.
func printed(diagnostics string) []byte {
	for _, line := range strings.Split(diagnostics, "\n") {
		if strings.HasPrefix(line, "[{") {
			return []byte(line)
		}
	}
	return nil
}

func (r *nodeCheck) report(ctx context.Context) error {
	slices.SortStableFunc(r.findings, func(a, b check.Finding) int { return strings.Compare(a.Node, b.Node) })
	text, err := json.Marshal(r.findings)
	if err != nil {
		return err
	}
	return store.WriteFile(ctx, r.dir, Result, text, 0o600)
}
