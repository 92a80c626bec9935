package proto_test

import (
	"fmt"
	"slices"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/proto"
)

func TestRoutesOfAllAndOfSome(t *testing.T) {
	addresses := []proto.TaskAddress{{Port: 20000, Host: "n1", RealPort: 20000}, {}, {Port: 20002}, {Port: 20003, Host: "n1", RealPort: 20005}, {Port: 20000, Host: "n2", RealPort: 20000}}
	known := make([]proto.TaskAddress, len(addresses))
	if err := proto.NewRoutes(nil, addresses, nil).Apply(known); err != nil || !slices.Equal(known, addresses) {
		t.Fatalf("%v became %v, %v", addresses, known, err)
	}
	moved := []proto.TaskAddress{{Port: 20001, Host: "n3", RealPort: 20001}, {Port: 20000}}
	r := proto.NewRoutes([]int{1, 4}, moved, []int{4})
	if err := r.Apply(known); err != nil || known[1] != moved[0] || known[4] != moved[1] || known[0] != addresses[0] || !slices.Equal(r.Disconnect, []uint32{4}) {
		t.Fatalf("after %v: %v, %v", r, known, err)
	}
	if err := proto.NewRoutes([]int{}, nil, []int{2}).Apply(known); err != nil {
		t.Errorf("a mere cut: %v", err)
	}
	for _, wrong := range []*proto.Routes{
		proto.NewRoutes(nil, addresses[1:], nil), proto.NewRoutes([]int{5}, addresses[:1], nil), {Tasks: []uint32{1}}, {Full: true, PeerPorts: make([]uint32, 5)},
	} {
		if err := wrong.Apply(known); err == nil {
			t.Errorf("%v was taken", wrong)
		}
	}
}

// Every agent of a job gets it.
func TestRoutesAreSmall(t *testing.T) {
	var addresses []proto.TaskAddress
	for i := range 10000 {
		addresses = append(addresses, proto.TaskAddress{Port: 10000 + i, Host: fmt.Sprintf("node-%03d.example.com", i%500), RealPort: 10000 + i})
	}
	b, err := pb.Marshal(proto.NewRoutes(nil, addresses, nil))
	if err != nil || len(b) > 100_000 {
		t.Errorf("10,000 tasks on 500 nodes take %d bytes, %v", len(b), err)
	}
}
