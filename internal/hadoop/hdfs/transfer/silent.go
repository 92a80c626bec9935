package transfer

import (
	"slices"
	"sync"
	"time"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// silentFor is how long a DataNode that did not answer is avoided.
const silentFor = time.Minute

// Silent are the DataNodes that did not answer lately. Clients share it, so that a
// timeout is waited for once. Its methods may be called from any goroutine, and the
// zero value is ready.
type Silent struct {
	mu    sync.Mutex
	nodes []silentNode // the longest ago first
}

type silentNode struct {
	info  *wire.DatanodeInfoProto
	since time.Time
}

// Add records that a DataNode did not answer.
func (s *Silent) Add(info *wire.DatanodeInfoProto) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = slices.DeleteFunc(s.nodes, func(n silentNode) bool { return same(n.info, info.GetId()) })
	s.nodes = append(s.nodes, silentNode{info, time.Now()})
}

// Nodes returns those that did not answer in the last minute, the latest last.
func (s *Silent) Nodes() []*wire.DatanodeInfoProto {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = slices.DeleteFunc(s.nodes, func(n silentNode) bool { return time.Since(n.since) > silentFor })
	nodes := make([]*wire.DatanodeInfoProto, 0, len(s.nodes))
	for _, n := range s.nodes {
		nodes = append(nodes, n.info)
	}
	return nodes
}

// Has reports whether a DataNode is among them.
func (s *Silent) Has(id *wire.DatanodeIDProto) bool {
	return slices.ContainsFunc(s.Nodes(), func(n *wire.DatanodeInfoProto) bool { return same(n, id) })
}

func same(n *wire.DatanodeInfoProto, id *wire.DatanodeIDProto) bool {
	return n.GetId().GetDatanodeUuid() == id.GetDatanodeUuid()
}
