package peers

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/hadoop/conf"
	"holdfast/proto"
)

// TestPortsOfServicesAreLeftToThem: a service that the configuration names may be
// down when a task looks for a port, and must be able to start again.
func TestPortsOfServicesAreLeftToThem(t *testing.T) {
	const free = 23456
	var named []string
	for port := proto.LowestPort; port < firstEphemeral(); port++ {
		if port != free {
			named = append(named, fmt.Sprintf("node:%d", port))
		}
	}
	p, err := HoldPort(0, conf.New(map[string]string{"some.service.addresses": strings.Join(named, ",")}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if p.Number != free {
		t.Errorf("the task got port %d, which is a service's, and %d is free", p.Number, free)
	}
}

func TestNoPortIsFree(t *testing.T) {
	var named []string
	for port := proto.LowestPort; port < firstEphemeral(); port++ {
		named = append(named, fmt.Sprintf("node:%d", port))
	}
	if p, err := HoldPort(0, conf.New(map[string]string{"some.service.addresses": strings.Join(named, ",")})); err == nil {
		p.Release()
		t.Errorf("the task got port %d, which is a service's", p.Number)
	}
}
