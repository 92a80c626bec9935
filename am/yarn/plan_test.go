package yarn

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"holdfast/am/core/action"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// inRack is a node of 8000 MB in a rack.
func inRack(i int, rack string, used int64) hadoop.Node {
	n := node(i, 8000, used)
	n.Rack = rack
	return n
}

// strictPlaces are the places of requests from which containers may come.
func strictPlaces(c change) map[string]int32 {
	m := map[string]int32{}
	for _, r := range c.requests {
		if !r.Strict && r.Count > 0 {
			m[fmt.Sprintf("%d %s", r.Priority, r.Place)] = r.Count
		}
	}
	return m
}

// TestTablePacksARole: the role's containers are asked for on one node that has room for all,
// else on few nodes of one rack, and where others of them are; after too long, or where room is
// scarce, on any.
func TestTablePacksARole(t *testing.T) {
	host := map[string]string{"other-1": "n1", "other-2": "n2"}
	for _, tt := range []struct {
		name  string
		nodes []hadoop.Node
		n     int
		near  []string
		soft  bool
		want  map[string]int32
	}{
		{"one node has room for all", []hadoop.Node{inRack(1, "/a", 6000), inRack(2, "/b", 2000), inRack(3, "/b", 7000)}, 4, nil, false,
			map[string]int32{"1 n2": 4}},
		{"one rack has", []hadoop.Node{inRack(1, "/a", 2000), inRack(2, "/b", 4000), inRack(3, "/b", 1000), inRack(4, "/b", 6000)}, 10, nil, false,
			map[string]int32{"1 n3": 7, "1 n2": 3}},
		{"only two racks have", []hadoop.Node{inRack(1, "/a", 2000), inRack(2, "/b", 4000)}, 9, nil, false,
			map[string]int32{"1 n1": 6, "1 n2": 3}},
		{"none have", []hadoop.Node{inRack(1, "/a", 7000), inRack(2, "/b", 7000)}, 4, nil, false,
			map[string]int32{"1 *": 4, "1 /a": 2, "1 /b": 2, "1 n1": 2, "1 n2": 2}},
		{"beside the others", []hadoop.Node{inRack(1, "/a", 7000), inRack(2, "/b", 0)}, 1, []string{"other-1"}, false,
			map[string]int32{"1 n1": 1}},
		{"in the others' rack", []hadoop.Node{inRack(1, "/a", 8000), inRack(2, "/b", 0), inRack(3, "/a", 7000)}, 1, []string{"other-1"}, false,
			map[string]int32{"1 n3": 1}},
		{"beside the most of the others", []hadoop.Node{inRack(1, "/a", 0), inRack(2, "/b", 7000)}, 1, []string{"other-1", "other-2", "other-2"}, false,
			map[string]int32{"1 n2": 1}},
		{"for too long", []hadoop.Node{inRack(1, "/a", 0), inRack(2, "/b", 2000)}, 2, nil, true,
			map[string]int32{"1 *": 2, "1 /a": 2, "1 n1": 2}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tb := newTable()
			tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Pack: true}}}}
			tb.hostOf = func(c string) string { return host[c] }
			tb.setNodes(tt.nodes, true)
			for _, a := range asks("worker", 0, tt.n, 1000) {
				a.Near = tt.near
				tb.add(a)
			}
			if got := strictPlaces(tb.changes(tt.soft)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("containers may come from %v, want %v", got, tt.want)
			}
		})
	}
}

// TestTableKeepsRolesApart: roles that must share no node are asked for on different nodes,
// each on as many as it needs, and what has come on one keeps the other off it.
func TestTableKeepsRolesApart(t *testing.T) {
	tb := newTable()
	tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps", Spread: true}, {Name: "worker", AntiAffinity: []string{"ps"}}, {Name: "reader"}}}}
	host := map[string]string{}
	tb.hostOf = func(c string) string { return host[c] }
	tb.setNodes([]hadoop.Node{inRack(1, "/a", 7000), inRack(2, "/a", 0), inRack(3, "/b", 0), inRack(4, "/b", 7000)}, true)
	for _, a := range slices.Concat(asks("ps", 0, 2, 1000), asks("worker", 0, 9, 1000), asks("reader", 0, 1, 1000)) {
		tb.add(a)
	}
	// The workers have room on n2 and n3 only.
	first := tb.changes(true)
	of := map[int32][]string{}
	for _, r := range first.requests {
		if r.Place == hadoop.Anywhere && r.Strict != (r.Priority != 3) {
			t.Errorf("%+v: strict is %t", r, r.Strict)
		}
		if r.Place[0] == 'n' && r.Count > 0 {
			of[r.Priority] = append(of[r.Priority], r.Place)
		}
	}
	if !slices.Equal(of[1], []string{"n1", "n4"}) || !slices.Equal(of[2], []string{"n2", "n3"}) {
		t.Fatalf("servers are asked for on %v, workers on %v", of[1], of[2])
	}
	server := of[1][0]
	host["server"] = server
	if _, ok := tb.allocated(1, server, "server"); !ok {
		t.Fatal("a server's container answers nothing")
	}
	if a, ok := tb.allocated(2, server, "worker"); ok {
		t.Errorf("%s is on the server's node", a.Request)
	}
	if a, ok := tb.allocated(3, server, "reader"); !ok {
		t.Errorf("a reader is kept off: %v", a)
	}
	// A role that needs more than all nodes have leaves one to the other: fewer of it may do.
	tb = newTable()
	tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", AntiAffinity: []string{"ps"}}, {Name: "ps"}}}}
	tb.setNodes([]hadoop.Node{inRack(1, "/a", 0), inRack(2, "/a", 0)}, true)
	for _, a := range slices.Concat(asks("worker", 0, 20, 1000), asks("ps", 0, 1, 1000)) {
		tb.add(a)
	}
	if got, want := strictPlaces(tb.changes(false)), (map[string]int32{"1 n1": 20, "2 n2": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("where there is not enough for all, containers may come from %v, want %v", got, want)
	}
	// One that was lost asks with the containers that there are.
	tb = newTable()
	tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps"}, {Name: "worker", AntiAffinity: []string{"ps"}}}}}
	tb.hostOf = func(c string) string { return host[c] }
	host["server"] = "n2"
	tb.setNodes([]hadoop.Node{inRack(1, "/a", 0), inRack(2, "/a", 0)}, true)
	tb.add(action.Ask{Request: "worker-1", Role: "worker", MemoryMB: 1000, Apart: []string{"server"}})
	if got, want := strictPlaces(tb.changes(false)), (map[string]int32{"1 n1": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("a lost one may come from %v, want %v", got, want)
	}
}

// TestTableBindsAsksToNodesThatThereAre: containers that may come on the nodes only that are named
// could not come at all where no node is known; and where one that is named is lost, or another is
// there, the scheduler is told without another look at the cluster.
func TestTableBindsAsksToNodesThatThereAre(t *testing.T) {
	tb := newTable()
	tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Spread: true}}}}
	told := func() map[string]int32 {
		defer tb.answered()
		return strictPlaces(tb.changes(false))
	}
	tb.add(asks("worker", 0, 1, 1000)[0])
	if got, want := told(), (map[string]int32{"1 *": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("where no node is known, a container may come from %v, want %v", got, want)
	}
	tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 7900)}, true)
	if got, want := told(), (map[string]int32{"1 n1": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("a container may come from %v, want %v", got, want)
	}
	lost := node(1, 8000, 0)
	lost.State = "LOST"
	tb.nodeChanged(lost)
	tb.nodeChanged(node(3, 8000, 0))
	if got, want := told(), (map[string]int32{"1 n3": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after the loss of a node, a container may come from %v, want %v", got, want)
	}
}

// TestTableNamesNodesThatHaveRoom: where a cluster has more nodes than an ask names, those are
// named that have room for it, of all that the scheduler counts, and not the ones with the most
// memory. What is bound to the nodes that are named comes on no others.
func TestTableNamesNodesThatHaveRoom(t *testing.T) {
	for name, change := range map[string]func(*hadoop.Node){
		"no GPU is left":   func(n *hadoop.Node) { n.Used.GPUs = 4 },
		"no vcore is left": func(n *hadoop.Node) { n.Used.VCores = 8 },
	} {
		t.Run(name, func(t *testing.T) {
			tb := newTable()
			tb.counted = true
			tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Spread: true}}}}
			var list []hadoop.Node
			for i := range 3 * maxNamed {
				n := node(i, 8000, 0)
				if n.Capability.GPUs = 4; i < 2*maxNamed {
					change(&n)
				} else {
					n.Used.MemoryMB = 6000
				}
				list = append(list, n)
			}
			tb.setNodes(list, true)
			for _, a := range asks("worker", 0, 2, 1000) {
				a.GPUs = 1
				tb.add(a)
			}
			places := strictPlaces(tb.changes(false))
			if len(places) == 0 {
				t.Error("none are named")
			}
			vain := slices.DeleteFunc(list[:2*maxNamed], func(n hadoop.Node) bool { return places["1 "+n.ID.Host] == 0 })
			if len(vain) > 0 {
				t.Errorf("%d nodes are named on which %s", len(vain), name)
			}
		})
	}
}
