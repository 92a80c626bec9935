package submit

import (
	"strings"
	"testing"

	"holdfast/internal/hadoop/yarn"
)

func TestFitNodes(t *testing.T) {
	node := func(state string, mb int64, cores int32) yarn.Node {
		return yarn.Node{State: state, Capability: yarn.Resource{MemoryMB: mb, VCores: cores}}
	}
	nodes := []yarn.Node{node("RUNNING", 4096, 8), node("RUNNING", 8192, 2), node("LOST", 65536, 64)}
	ask := func(mb int64, cores int32) error {
		return fitNodes(nodes, []yarn.Demand{{Role: "worker", Count: 1, Resource: yarn.Resource{MemoryMB: mb, VCores: cores}}})
	}
	if err := ask(8192, 2); err != nil {
		t.Error(err)
	}
	for _, err := range []error{ask(8193, 1), ask(8192, 3)} { // the second: no single node has both
		if err == nil || !strings.Contains(err.Error(), "worker") || !strings.Contains(err.Error(), "8 GB") {
			t.Errorf("the error is: %v", err)
		}
	}
	if err := fitNodes([]yarn.Node{node("LOST", 1, 1)}, []yarn.Demand{{Role: "w", Resource: yarn.Resource{MemoryMB: 2}}}); err != nil {
		t.Errorf("without running nodes there is nothing to compare with: %v", err)
	}
}
