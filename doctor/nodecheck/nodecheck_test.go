package nodecheck

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/doctor/check"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/yarn"
)

// pretended is YARN with a node for each container, which answer once all have been asked to start
// theirs.
type pretended struct {
	dir  store.Store
	give []yarn.Container
	done chan yarn.Completed

	mu    sync.Mutex
	asked int
	all   chan struct{} // closed when all have been asked
}

func (p *pretended) Learn([]yarn.NMToken) {}

func (p *pretended) Allocate(context.Context, yarn.Heartbeat) (*yarn.Answer, error) {
	a := &yarn.Answer{Allocated: p.give}
	p.give = nil
	for {
		select {
		case c := <-p.done:
			a.Completed = append(a.Completed, c)
		default:
			return a, nil
		}
	}
}

func (p *pretended) Start(ctx context.Context, node yarn.NodeID, list []yarn.Start) (map[yarn.ContainerID]error, error) {
	p.mu.Lock()
	if p.asked++; p.asked == cap(p.done) {
		close(p.all)
	}
	p.mu.Unlock()
	select {
	case <-p.all:
	case <-time.After(30 * time.Second):
		return nil, errors.New("the other nodes were not asked meanwhile")
	}
	id := list[0].Container.ID
	if node.Host == "broken" {
		return map[yarn.ContainerID]error{id: errors.New("refused")}, nil
	}
	text, err := json.Marshal([]check.Finding{{Subject: "system", Level: check.Good, Text: "well"}})
	if err == nil {
		err = store.WriteFile(ctx, p.dir, path.Join(nodesDir, id.String()+".json"), text, 0o600)
	}
	p.done <- yarn.Completed{ID: id}
	return nil, err
}

// checked returns what is found on some nodes.
func checked(t *testing.T, nodes ...yarn.Node) map[string]check.Finding {
	t.Helper()
	dir, err := store.Open(t.Context(), t.TempDir(), nil)
	if err == nil {
		err = store.MkdirAll(t.Context(), dir, nodesDir, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	p := &pretended{dir: dir, all: make(chan struct{})}
	for i, n := range nodes {
		if n.Running() {
			p.give = append(p.give, yarn.Container{ID: yarn.ContainerID{Number: int64(i + 1)}, Node: n.ID})
		}
	}
	p.done = make(chan yarn.Completed, len(p.give))
	r := newNodeCheck(Config{Credentials: token.New()})
	r.master, r.nodes, r.dir, r.queue = p, p, dir, yarn.Queue{Name: "default", Labels: []string{"*"}}
	if err := r.checkNodes(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	found := map[string]check.Finding{}
	for _, f := range r.findings {
		found[f.Node] = f
	}
	if len(found) != len(nodes) {
		t.Errorf("%d nodes, and of these is said: %+v", len(nodes), r.findings)
	}
	return found
}

func node(host, state string) yarn.Node {
	return yarn.Node{ID: yarn.NodeID{Host: host, Port: 1}, State: state, Rack: "/rack", Capability: yarn.Resource{MemoryMB: 4096, VCores: 4}}
}

// TestNodesAreAskedTogether: one that takes long to answer keeps no other one waiting, and one that
// refuses its container is told.
func TestNodesAreAskedTogether(t *testing.T) {
	found := checked(t, node("a", "RUNNING"), node("broken", "RUNNING"), node("b", "RUNNING"))
	for _, host := range []string{"a", "b"} {
		if f := found[host]; f.Level != check.Good || f.Subject != "system" {
			t.Errorf("%+v", f)
		}
	}
	if f := found["broken"]; f.Level != check.Bad || !strings.Contains(f.Text, "refused") {
		t.Errorf("%+v", f)
	}
}

// TestNodesOutOfService: that a node was decommissioned is no fault of the cluster's.
func TestNodesOutOfService(t *testing.T) {
	found := checked(t, node("a", "RUNNING"), node("old", "DECOMMISSIONED"), node("leaving", "DECOMMISSIONING"), node("lost", "LOST"))
	for host, want := range map[string]check.Level{"old": check.Note, "leaving": check.Note, "lost": check.Bad} {
		if f := found[host]; f.Level != want || !strings.Contains(f.Text, "YARN does not use the node") {
			t.Errorf("%+v", f)
		}
	}
}
