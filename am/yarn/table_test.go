package yarn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"holdfast/am/core/action"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

func node(i int, total, used int64) hadoop.Node {
	return hadoop.Node{
		ID: hadoop.NodeID{Host: fmt.Sprintf("n%d", i), Port: 1}, Rack: "/rack", State: "RUNNING",
		Capability: hadoop.Resource{MemoryMB: total, VCores: 8}, Used: hadoop.Resource{MemoryMB: used},
	}
}

func asks(role string, from, n int, mb int64) []action.Ask {
	var list []action.Ask
	for i := range n {
		list = append(list, action.Ask{Request: fmt.Sprintf("%s-%d", role, from+i), Role: role, MemoryMB: mb, VCores: 1})
	}
	return list
}

func counts(c change) map[string]int32 {
	m := map[string]int32{}
	for _, r := range c.requests {
		m[fmt.Sprintf("%d %s", r.Priority, r.Place)] = r.Count
	}
	return m
}

// TestTableCountsOtherResources: a node gets as many containers as all its resources let in,
// and asks for different amounts of one are told apart.
func TestTableCountsOtherResources(t *testing.T) {
	table := newTable()
	table.setNodes([]hadoop.Node{node(1, 8192, 0), withLicenses(node(2, 8192, 0), 4, 0), withLicenses(node(3, 8192, 0), 4, 2)}, true)
	for range 3 {
		table.add(licensed)
	}
	other := licensed
	other.Others = map[string]*proto.Amount{"license": {Value: 1}}
	table.add(other)
	got := counts(table.changes(false))
	if got["1 *"] != 3 || got["1 n1"] != 0 || got["1 n2"] != 2 || got["1 n3"] != 1 || got["2 *"] != 1 {
		t.Errorf("asked for %v", got)
	}
}

func TestTableSharesNodes(t *testing.T) {
	tests := []struct {
		name  string
		nodes []hadoop.Node
		fresh bool
		n     int
		want  map[string]int32
	}{
		{"no node known", nil, true, 3, map[string]int32{"1 *": 3}},
		{"an even share, rounded up", []hadoop.Node{node(1, 8000, 0), node(2, 8000, 0), node(3, 8000, 0)}, true, 4,
			map[string]int32{"1 *": 4, "1 /rack": 4, "1 n1": 2, "1 n2": 2, "1 n3": 2}},
		{"a full node is not named", []hadoop.Node{node(1, 8000, 7900), node(2, 8000, 0), node(3, 8000, 0)}, true, 4,
			map[string]int32{"1 *": 4, "1 /rack": 4, "1 n2": 2, "1 n3": 2}},
		{"a node with little room gets no more than that", []hadoop.Node{node(1, 8000, 7000), node(2, 8000, 0)}, true, 6,
			map[string]int32{"1 *": 6, "1 /rack": 6, "1 n1": 1, "1 n2": 5}},
		{"old news of room do not count", []hadoop.Node{node(1, 8000, 7900), node(2, 8000, 0)}, false, 2,
			map[string]int32{"1 *": 2, "1 /rack": 2, "1 n1": 1, "1 n2": 1}},
		{"where all is full, none is named", []hadoop.Node{node(1, 8000, 7900), node(2, 8000, 7900)}, true, 2,
			map[string]int32{"1 *": 2}},
		{"a small node is never named", []hadoop.Node{node(1, 500, 0), node(2, 8000, 0)}, false, 2,
			map[string]int32{"1 *": 2, "1 /rack": 2, "1 n2": 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tb := newTable()
			tb.setNodes(tt.nodes, tt.fresh)
			for _, a := range asks("ps", 0, tt.n, 1000) {
				tb.add(a)
			}
			if got := counts(tb.changes(false)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("told %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTableGivesEachResourceAPriority(t *testing.T) {
	tb := newTable()
	for _, a := range slices.Concat(asks("ps", 0, 2, 1000), asks("worker", 0, 1, 2000), asks("chief", 0, 1, 2000)) {
		tb.add(a)
	}
	if got, want := counts(tb.changes(false)), (map[string]int32{"1 *": 2, "2 *": 2}); !reflect.DeepEqual(got, want) {
		t.Fatalf("told %v, want %v", got, want)
	}
	if tb.hasChanges() || len(tb.changes(false).requests) != 0 {
		t.Error("told the same twice")
	}
	tb.answered()
	if a, ok := tb.allocated(2, "n1", "c"); !ok || a.Role != "worker" {
		t.Errorf("a container of priority 2 answers %+v, %v", a, ok)
	}
	if tb.hasChanges() {
		t.Error("the scheduler lowers its numbers itself; telling it again would raise them")
	}
	tb.answered()
	if !tb.remove("ps-1") || tb.remove("worker-0") {
		t.Error("remove: an ask without an answer can be taken back, one with an answer not")
	}
	if got, want := counts(tb.changes(false)), (map[string]int32{"1 *": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after taking one back, told %v, want %v", got, want)
	}
	tb.remove("ps-0")
	tb.remove("chief-0")
	if got, want := counts(tb.changes(false)), (map[string]int32{"1 *": 0, "2 *": 0}); !reflect.DeepEqual(got, want) {
		t.Errorf("after taking all back, told %v, want %v", got, want)
	}
	if _, ok := tb.allocated(1, "n1", "c"); ok {
		t.Error("a container that nobody wants was taken")
	}
	if _, ok := tb.allocated(7, "n1", "c"); ok {
		t.Error("a container of a priority that was never used was taken")
	}
}

func TestTableAvoidsNodes(t *testing.T) {
	tb := newTable()
	tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 0)}, true)
	a := asks("ps", 0, 1, 1000)[0]
	a.Avoid = []string{"n1"}
	tb.add(a)
	c := tb.changes(false)
	if !slices.Equal(c.avoid, []string{"n1"}) || len(c.allow) != 0 {
		t.Fatalf("avoid %v, allow %v", c.avoid, c.allow)
	}
	if got, want := counts(c), (map[string]int32{"1 *": 1, "1 /rack": 1, "1 n2": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	// The RM may have got that or not: say all again, and take back what was
	// not meant to last.
	tb.resend()
	if c = tb.changes(false); !slices.Equal(c.avoid, []string{"n1"}) {
		t.Errorf("after resend, avoid %v", c.avoid)
	}
	if c = tb.changes(true); !slices.Equal(c.allow, []string{"n1"}) || counts(c)["1 n1"] != 1 {
		t.Errorf("after waiting in vain: %+v", c)
	}
	// Nothing is left of the cluster: better a bad node than none.
	tb = newTable()
	tb.setNodes([]hadoop.Node{node(1, 8000, 0)}, true)
	tb.add(a)
	if c = tb.changes(false); len(c.avoid) != 0 {
		t.Errorf("the only node is avoided: %v", c.avoid)
	}
	// The ResourceManager does not say which nodes there are.
	tb = newTable()
	tb.add(a)
	if c = tb.changes(false); !slices.Equal(c.avoid, []string{"n1"}) {
		t.Errorf("without a list of nodes, avoid %v", c.avoid)
	}
	if c = tb.changes(true); !slices.Equal(c.allow, []string{"n1"}) {
		t.Errorf("without a list of nodes, after waiting in vain: %+v", c)
	}
}

// TestTableTakesBackWhatWasToBeAvoided: a node that need not be avoided any longer is told to
// the scheduler until an answer shows that it knows, and at the start of a master that follows
// another one, whose nodes to avoid the scheduler keeps.
func TestTableTakesBackWhatWasToBeAvoided(t *testing.T) {
	a := asks("ps", 0, 1, 1000)[0]
	a.Avoid = []string{"n1"}
	begin := func() *table {
		tb := newTable()
		tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 0)}, true)
		tb.add(a)
		tb.changes(false)
		tb.answered()
		return tb
	}
	for name, lose := range map[string]func(*table){
		"not received":               func(tb *table) { tb.resend() },
		"refused with what is asked": func(tb *table) { tb.refused(); tb.resend() },
		"ignored, as the answer to an earlier message comes again": func(tb *table) { tb.answered(); tb.resend() },
	} {
		t.Run(name, func(t *testing.T) {
			tb := begin()
			for range 2 {
				if c := tb.changes(true); !slices.Equal(c.allow, []string{"n1"}) {
					t.Fatalf("told that %v need not be avoided", c.allow)
				}
				lose(tb)
			}
			if c := tb.changes(false); !slices.Equal(c.avoid, []string{"n1"}) || len(c.allow) != 0 {
				t.Errorf("to be avoided again: %v; not any longer: %v", c.avoid, c.allow)
			}
			tb.answered()
			tb.changes(true)
			tb.answered()
			if c := tb.changes(true); len(c.allow) != 0 {
				t.Errorf("told again, after an answer, that %v need not be avoided", c.allow)
			}
		})
	}
	tb := newTable()
	tb.inherited = true
	tb.add(a)
	if c := tb.changes(false); !slices.Equal(c.avoid, []string{"n1"}) || len(c.allow) != 0 {
		t.Errorf("before any node is known, %v are avoided, and %v need not be", c.avoid, c.allow)
	}
	tb.resend()
	for range 2 { // of a lost message, too
		tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 0), node(3, 8000, 0)}, true)
		if c := tb.changes(false); !slices.Equal(c.avoid, []string{"n1"}) || !slices.Equal(c.allow, []string{"n2", "n3"}) {
			t.Errorf("a following master has %v avoided, and %v not", c.avoid, c.allow)
		}
		tb.resend()
	}
	tb.changes(false)
	tb.answered()
	tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 0)}, true)
	if c := tb.changes(false); len(c.allow) != 0 {
		t.Errorf("told again, after an answer, that %v need not be avoided", c.allow)
	}
}

// scheduler is a model of the RM: numbers per priority and place, lowered as it
// allocates (LocalityAppPlacementAllocator).
type scheduler struct {
	numbers map[int32]map[string]int32
	ready   []hadoop.Container // allocated, not yet told
	next    int64
}

func (s *scheduler) take(c change) {
	for _, r := range c.requests {
		if s.numbers[r.Priority] == nil {
			s.numbers[r.Priority] = map[string]int32{}
		}
		s.numbers[r.Priority][r.Place] = r.Count
	}
}

// beat is a node's heartbeat.
func (s *scheduler) beat(host string, most int) {
	for _, p := range slices.Sorted(maps.Keys(s.numbers)) {
		for range most {
			n := s.numbers[p]
			if n["*"] <= 0 {
				break
			}
			n["*"]--
			if n[host] > 0 {
				n[host]--
				n["/rack"]--
			} else if n["/rack"] > 0 {
				n["/rack"]--
			}
			s.next++
			s.ready = append(s.ready, hadoop.Container{ID: hadoop.ContainerID{Number: s.next}, Node: hadoop.NodeID{Host: host}, Priority: p})
		}
	}
}

// Whatever the order of asks, withdrawals, allocations and heartbeats, each ask
// is answered once, and the scheduler does not go on allocating for nobody.
func TestTableSettlesWithAScheduler(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		tb, rm := newTable(), &scheduler{numbers: map[int32]map[string]int32{}}
		var list []hadoop.Node
		for i := range r.IntN(5) {
			list = append(list, node(i, 8000, int64(r.IntN(8000))))
		}
		tb.setNodes(list, r.IntN(2) == 0)
		open := map[string]bool{} // asks without an answer
		made, excess := 0, 0
		exchange := func(quiet bool) {
			c := tb.changes(false)
			if !quiet && r.IntN(20) == 0 {
				tb.resend() // the call was lost on its way
				return
			}
			rm.take(c)
			if !quiet && r.IntN(3) == 0 { // between the scheduler's taking in and answering
				rm.beat(fmt.Sprintf("n%d", r.IntN(5)), 1+r.IntN(3))
			}
			for _, k := range rm.ready {
				a, ok := tb.allocated(k.Priority, k.Node.Host, "c")
				if !ok {
					excess++
					continue
				}
				if !open[a.Request] {
					t.Fatalf("seed %d: %s was answered twice or after it was taken back", seed, a.Request)
				}
				delete(open, a.Request)
			}
			rm.ready = nil
			tb.answered()
		}
		for range 60 {
			switch r.IntN(6) {
			case 0, 1:
				a := asks("r", made, 1, int64(1000*(1+r.IntN(3))))[0]
				made++
				open[a.Request] = true
				tb.add(a)
			case 2:
				for _, name := range slices.Sorted(maps.Keys(open)) {
					if r.IntN(4) == 0 {
						tb.remove(name)
						delete(open, name)
					}
				}
			case 3:
				rm.beat(fmt.Sprintf("n%d", r.IntN(5)), 1+r.IntN(3))
			case 4:
				exchange(false)
				if r.IntN(3) > 0 {
					break
				}
				// While no node says anything, the scheduler soon has just what is wanted.
				for exchange(true); tb.hasChanges(); exchange(true) {
				}
				for _, g := range tb.groups {
					if n := rm.numbers[g.priority]["*"]; int(n) != len(g.pending) {
						t.Fatalf("seed %d: the scheduler has %d to give with priority %d, and %d are wanted", seed, n, g.priority, len(g.pending))
					}
				}
			case 5:
				tb.setNodes(list, r.IntN(2) == 0)
			}
		}
		for range 40 { // in the end there is time and room
			exchange(false)
			rm.beat(fmt.Sprintf("n%d", r.IntN(5)), 3)
		}
		if len(open) > 0 || len(tb.pending()) > 0 {
			t.Fatalf("seed %d: %d asks were never answered", seed, len(open))
		}
		for p, n := range rm.numbers {
			if n["*"] != 0 {
				t.Fatalf("seed %d: the scheduler still has %d to give with priority %d", seed, n["*"], p)
			}
		}
		if excess > made {
			t.Fatalf("seed %d: %d containers too many for %d asks", seed, excess, made)
		}
	}
}

// TestTableKeepsToPartitions: asks of one size for two partitions have priorities of their
// own, and name the nodes of theirs; the label is that of the whole cluster's request.
func TestTableKeepsToPartitions(t *testing.T) {
	in := func(i int, label string) hadoop.Node {
		n := node(i, 8000, 0)
		n.Label = label
		return n
	}
	tb := newTable()
	tb.place = placement{
		spec:       &proto.JobSpec{NodeLabel: "gpu", Roles: []*proto.RoleSpec{{Name: "worker"}, {Name: "ps", NodeLabel: "spot"}}},
		partitions: []hadoop.Partition{{Label: "gpu", Exclusive: true}, {Label: "spot"}},
	}
	tb.setNodes([]hadoop.Node{in(1, ""), in(2, "gpu"), in(3, "gpu"), in(4, "spot")}, true)
	for _, a := range slices.Concat(asks("worker", 0, 2, 1000), asks("ps", 0, 1, 1000)) {
		tb.add(a)
	}
	c := tb.changes(false)
	if got, want := counts(c), (map[string]int32{"1 *": 2, "1 /rack": 2, "1 n2": 1, "1 n3": 1, "2 *": 1, "2 /rack": 1, "2 n4": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	for _, r := range c.requests {
		if want := map[int32]string{1: "gpu", 2: "spot"}[r.Priority]; r.Label != want {
			t.Errorf("%+v is not for %s", r, want)
		}
	}

	// A spare container is asked for with the label that all roles have.
	tb = newTable()
	tb.place = placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", NodeLabel: "gpu"}, {Name: "ps", NodeLabel: "gpu"}}}}
	tb.add(asks("spare", 0, 1, 1000)[0])
	if c := tb.changes(false); len(c.requests) != 1 || c.requests[0].Label != "gpu" {
		t.Errorf("a spare is asked for by %+v", c.requests)
	}

	tb = newTable()
	tb.place = placement{spec: &proto.JobSpec{}, partitions: []hadoop.Partition{{Label: "gpu"}}, usual: "gpu"}
	tb.setNodes([]hadoop.Node{in(1, ""), in(2, "gpu")}, true)
	tb.add(asks("ps", 0, 1, 1000)[0])
	if got, want := counts(tb.changes(false)), (map[string]int32{"1 *": 1, "1 /rack": 1, "1 n2": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("in a queue with a label of its own, told %v, want %v", got, want)
	}
}

// TestTableSpreadsARole: each node is asked for one container of the role, and no others;
// one that comes on a node with another is not taken. Nodes that the user has ruled out are
// not named, however long others do not come.
func TestTableSpreadsARole(t *testing.T) {
	tb := newTable()
	tb.place = placement{spec: &proto.JobSpec{AvoidNodes: []string{"n4"}, Roles: []*proto.RoleSpec{{Name: "ps", Spread: true}, {Name: "worker"}}}}
	host := map[string]string{"before": "n3"}
	tb.hostOf = func(c string) string { return host[c] }
	tb.setNodes([]hadoop.Node{node(1, 8000, 0), node(2, 8000, 0), node(3, 8000, 0), node(4, 8000, 0)}, true)
	for _, a := range asks("ps", 0, 2, 1000) {
		a.Apart = []string{"before"}
		tb.add(a)
	}
	tb.add(asks("worker", 0, 1, 1000)[0])
	c := tb.changes(true)
	if got, want := counts(c), (map[string]int32{"1 *": 2, "1 /rack": 2, "1 n1": 1, "1 n2": 1, "2 *": 1, "2 /rack": 1, "2 n1": 1, "2 n2": 1, "2 n3": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
	if !slices.Equal(c.avoid, []string{"n4"}) {
		t.Errorf("to be avoided: %v", c.avoid)
	}
	for _, r := range c.requests {
		if want := r.Priority == 1 && (r.Place == hadoop.Anywhere || r.Place == "/rack"); r.Strict != want {
			t.Errorf("%+v: strict should be %t", r, want)
		}
	}
	host["first"] = "n1"
	if a, ok := tb.allocated(1, "n1", "first"); !ok || a.Request != "ps-0" {
		t.Fatalf("a container on a free node answers %+v, %t", a, ok)
	}
	if _, ok := tb.allocated(1, "n1", "second"); ok {
		t.Error("two tasks are on one node")
	}
	if got, want := counts(tb.changes(true)), (map[string]int32{"1 *": 1, "1 /rack": 1, "1 n1": 0, "1 n2": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after the first, told %v, want %v", got, want)
	}
	delete(host, "before")
	tb.ended()
	if got, want := counts(tb.changes(true)), (map[string]int32{"1 *": 1, "1 /rack": 1, "1 n2": 1, "1 n3": 1}); !reflect.DeepEqual(got, want) {
		t.Errorf("after the end of one, told %v, want %v", got, want)
	}
}
