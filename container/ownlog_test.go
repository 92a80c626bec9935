package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/container"
	"holdfast/proto"
)

// TestAnAgentsLogIsCopiedBeforeItLeaves: once an agent has left, its job may end, and its
// node then ends the container at once.
func TestAnAgentsLogIsCopiedBeforeItLeaves(t *testing.T) {
	m := newMaster(t)
	m.startAgentProcess("c1", 0, func(c *container.Config) { c.OwnLog = "agent.log" })
	a := m.agent()
	a.send(&proto.Release{Why: "the test has ended"})
	for range a.heard { // until it leaves
	}
	text, err := os.ReadFile(filepath.Join(m.jobDir, "agent.log"))
	if err != nil || !strings.Contains(string(text), "told to end") {
		t.Errorf("of the agent's log there is %q, %v", text, err)
	}
}
