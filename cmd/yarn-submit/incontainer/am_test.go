package incontainer

import (
	"bytes"
	"testing"

	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// The keys that an agent is given are those of all agents, with the pass of its own container,
// and hold nothing of the application master's.
func TestAgentsGetTheirOwnPass(t *testing.T) {
	set, err := jobtls.New("job")
	if err != nil {
		t.Fatal(err)
	}
	s := secrets{Credentials: token.New(), keys: set.Master}
	s.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	packed, err := s.agentKeys("c1")
	if err != nil {
		t.Fatal(err)
	}
	own, err := jobtls.Unmarshal(packed)
	if err != nil {
		t.Fatal(err)
	}
	if !set.Master.Admits("c1", own.Pass) || set.Master.Admits("c2", own.Pass) {
		t.Error("the pass is not that of the container alone")
	}
	if !bytes.Equal(own.Key, set.Agent.Key) || bytes.Equal(own.Key, set.Master.Key) {
		t.Error("the key is not that of agents")
	}
	own.Pass = nil
	if !bytes.Equal(own.Marshal(), set.Agent.Marshal()) {
		t.Error("there is more in it than the keys of agents and a pass")
	}
}
