package yarn

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// What the NodeManager of Hadoop 3 says (ContainersMonitorImpl.formatErrorMessage).
const (
	beyondPhysical = "[2026-11-20 10:00:00.000]Container [pid=1,containerID=container_1_0001_01_000002] is running 236851200B beyond the 'PHYSICAL' memory limit. Current usage: 1.2 GB of 1 GB physical memory used; 4.8 GB of 21 GB virtual memory used. Killing container."
	beyondVirtual  = "[2026-11-20 10:00:00.000]Container [pid=1,containerID=container_1_0001_01_000002] is running 1579245568B beyond the 'VIRTUAL' memory limit. Current usage: 100 MB of 1 GB physical memory used; 3.6 GB of 2.1 GB virtual memory used. Killing container."
)

// notRecovered is what a NodeManager says of a container that it does not find after its restart
// (RecoveredContainerLaunch).
const notRecovered = "[2026-11-20 10:00:00.000]Container exited with a non-zero exit code 154. \n\n"

func TestCauses(t *testing.T) {
	tests := []struct {
		exit    int
		text    string
		stopped bool
		want    event.Cause
	}{
		{0, "", false, event.CauseOwnFault},
		{137, "Container killed on request. Exit code is 137", false, event.CauseOwnFault},
		{143, "", true, event.CauseReleased},
		{-100, "Container released on a *lost* node", false, event.CauseNodeLost},
		{-100, "Container released by application", false, event.CauseReleased},
		{-100, "Container expired since it was unused", false, event.CauseUnknown},
		{-100, "", true, event.CauseReleased},
		{-101, "", false, event.CauseDisksFailed},
		{-102, "Container preempted by scheduler", false, event.CausePreempted},
		{-102, "", true, event.CausePreempted},
		{-103, "", false, event.CauseVirtualLimit},
		{-104, "", false, event.CauseOutOfMemory},
		{-105, "", false, event.CauseReleased},
		{-106, "", false, event.CauseKilled},
		{-107, "", false, event.CauseKilled},
		{-108, "", false, event.CauseKilled},
		{-1000, "", false, event.CauseUnknown},
		{-42, "", false, event.CauseUnknown},
		{0, beyondPhysical, false, event.CauseOutOfMemory},
		{137, beyondPhysical, false, event.CauseOutOfMemory},
		{143, beyondPhysical, true, event.CauseOutOfMemory},
		{143, beyondVirtual, false, event.CauseVirtualLimit},
		{143, "[pid=1,containerID=x] is running beyond physical memory limits. Current usage: 1.2 GB of 1 GB physical memory used", false, event.CauseOutOfMemory},
		{1, beyondPhysical, false, event.CauseOwnFault}, // its own end came first
		{143, "Container killed on request. Exit code is 143", false, event.CauseOwnFault},
		{154, notRecovered, false, event.CauseNodeLost},
		{154, notRecovered, true, event.CauseReleased},
	}
	for _, tt := range tests {
		if got := cause(hadoop.Completed{Exit: tt.exit, Diagnostics: tt.text}, tt.stopped); got != tt.want {
			t.Errorf("exit %d %q, stopped %v: %v, want %v", tt.exit, tt.text, tt.stopped, got, tt.want)
		}
	}
}

// licensed is an ask for a resource type of its own.
var licensed = action.Ask{Request: "worker-0", Role: "worker", MemoryMB: 1024, VCores: 1, Others: map[string]*proto.Amount{"license": {Value: 2}}}

func withLicenses(n hadoop.Node, total, used int64) hadoop.Node {
	n.Capability.Others = map[string]hadoop.Amount{"license": {Value: total}}
	n.Used.Others = map[string]hadoop.Amount{"license": {Value: used}}
	return n
}

// licenses is room for what has no more than so many licenses.
func licenses(n int64) hadoop.Resource {
	return hadoop.Resource{MemoryMB: 8192, VCores: 8, Others: map[string]hadoop.Amount{"license": {Value: n}}}
}

// inUse is a node of 8 GB, 8 vcores and 4 GPUs, of which some are in use.
func inUse(i int, vcores, gpus int32) hadoop.Node {
	n := node(i, 8192, 0)
	n.Capability.GPUs, n.Used.VCores, n.Used.GPUs = 4, vcores, gpus
	return n
}

func withUsed(n hadoop.Node, mb int64) hadoop.Node {
	n.Used.MemoryMB = mb
	return n
}

func TestExplain(t *testing.T) {
	big := hadoop.Resource{MemoryMB: 1 << 20, VCores: 100}
	lost := node(1, 8192, 0)
	lost.State = "LOST"
	spot := node(2, 4096, 0)
	spot.Label = "spot"
	tests := []struct {
		name string
		asks []action.Ask
		view clusterView
		want []string
	}{
		{"too large for any node", asks("worker", 0, 2, 65536), clusterView{nodes: []hadoop.Node{node(1, 8192, 0), node(2, 4096, 0)}},
			[]string{"2 containers for worker", "64 GB", "n1", "8 GB"}},
		{"no node", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{lost}}, []string{"1 container for ps", "no node that runs", "1 lost"}},
		{"queue full", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasRoom: true, headroom: hadoop.Resource{MemoryMB: 512},
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, AbsoluteMax: 0.25, Allocated: 1536}},
			[]string{`"small" is full`, "1.5 GB of at most 2 GB", "512 MB", "ps asks for 1 GB"}},
		{"more than the queue may have", asks("ps", 0, 2, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasRoom: true, held: hadoop.Resource{MemoryMB: 1024},
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, AbsoluteMax: 0.25, Allocated: 1536}},
			[]string{`"small" is full`, "needs 3 GB in all, more than the 2 GB that the queue may ever have", "--queue"}},
		{"more than the queue may have of its own nodes, and others are lent", asks("ps", 0, 3, 1024), clusterView{nodes: []hadoop.Node{node(1, 2048, 2048), spot}, hasRoom: true,
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, AbsoluteMax: 1, Allocated: 2048}, place: placement{partitions: []hadoop.Partition{{Label: "spot"}}}},
			[]string{`the queue "small" is full: it leaves this job nothing, and ps asks for 1 GB, 1 vcore; it goes on when others in the queue end, or a node with another label that is not exclusive has room to lend`}},
		{"more than the nodes have", asks("ps", 0, 3, 4096), clusterView{nodes: []hadoop.Node{node(1, 8192, 7168), node(2, 2048, 0)}, hasRoom: true, headroom: big},
			[]string{"needs 12 GB in all, more than the 8 GB that the nodes"}},
		{"nodes full", asks("ps", 0, 3, 4096), clusterView{nodes: []hadoop.Node{node(1, 8192, 7168), node(2, 8192, 6144)}, hasRoom: true, headroom: big},
			[]string{"3 containers for ps", "no node has 4 GB", "2 GB on n2"}},
		{"GPUs", []action.Ask{{Role: "worker", MemoryMB: 1024, VCores: 1, GPUs: 2}}, clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}}, []string{"no node has 2 GPUs", "worker"}},
		{"another resource", []action.Ask{licensed}, clusterView{nodes: []hadoop.Node{node(1, 8192, 0), withLicenses(node(2, 8192, 0), 1, 0)}}, []string{"no node has 2 of license", "worker"}},
		{"another resource that is in use", []action.Ask{licensed}, clusterView{nodes: []hadoop.Node{node(1, 8192, 0), withLicenses(node(2, 8192, 0), 4, 3)}}, []string{"no node has 2 of license free now", "the most is 1", "other containers end"}},
		{"another resource of which the nodes have too little for all", []action.Ask{licensed, licensed, licensed}, clusterView{nodes: []hadoop.Node{withLicenses(node(1, 8192, 0), 4, 3)}, held: hadoop.Resource{Others: map[string]hadoop.Amount{"license": {Value: 1}}}},
			[]string{"no node has 2 of license free now", "needs 7 of license in all, more than the 4 of license that the nodes"}},
		{"another resource of the queue's", []action.Ask{licensed}, clusterView{nodes: []hadoop.Node{withLicenses(node(2, 8192, 0), 8, 5)}, hasRoom: true, counted: true, headroom: licenses(1),
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, Most: map[string]hadoop.Resource{"": licenses(6)}}},
			[]string{`"small" is full (it may have 6 of license at most): it leaves this job 1 of license, and worker asks for 1 GB, 1 vcore, 2 license; it goes on when others in the queue end`}},
		{"another resource of which the queue has too little", []action.Ask{licensed, licensed}, clusterView{nodes: []hadoop.Node{withLicenses(node(2, 8192, 0), 8, 0)}, hasRoom: true, counted: true, headroom: licenses(0),
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, AbsoluteMax: 0.2}},
			[]string{`"small" is full (it may have 1 of license at most)`, "needs 4 of license in all, more than the 1 of license that the queue may ever have"}},
		{"another resource of the user's", []action.Ask{licensed}, clusterView{nodes: []hadoop.Node{withLicenses(node(2, 8192, 0), 8, 4)}, hasRoom: true, counted: true, headroom: licenses(1),
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, Most: map[string]hadoop.Resource{"": licenses(6)}}},
			[]string{`the queue "small" may have more, and its user may not`, "it leaves this job 1 of license", "it goes on when other jobs of the user in the queue end"}},
		{"another resource of which the nodes have none left, and the queue may have all", []action.Ask{licensed}, clusterView{nodes: []hadoop.Node{withLicenses(node(2, 8192, 0), 8, 7)}, hasRoom: true, counted: true, headroom: licenses(-1),
			hasQueue: true, queue: hadoop.Queue{Name: "small", Running: true, Most: map[string]hadoop.Resource{"": licenses(8)}}},
			[]string{"no node has 2 of license free now for worker; the most is 1"}},
		{"vcores of the queue's", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasRoom: true, counted: true, headroom: hadoop.Resource{MemoryMB: 8192}},
			[]string{"is full: it leaves this job 0 vcores, and ps asks for 1 GB, 1 vcore"}},
		{"vcores that are not counted", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasRoom: true, headroom: hadoop.Resource{MemoryMB: 8192}}, []string{"there is room"}},
		{"vcores that are in use", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{inUse(1, 8, 0), inUse(2, 8, 0)}, hasRoom: true, counted: true, headroom: big},
			[]string{"no node has 1 vcore free now for ps; the most is 0 vcores; it goes on when other containers end"}},
		{"vcores that are in use and not counted", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{inUse(1, 8, 0)}, hasRoom: true, headroom: big}, []string{"there is room"}},
		{"GPUs that are in use", []action.Ask{{Role: "worker", MemoryMB: 1024, VCores: 1, GPUs: 2}}, clusterView{nodes: []hadoop.Node{inUse(1, 0, 3), inUse(2, 0, 4)}, hasRoom: true, headroom: big},
			[]string{"no node has 2 GPUs free now for worker; the most is 1 GPU; it goes on when other containers end"}},
		{"no node has all at once", []action.Ask{{Role: "worker", MemoryMB: 6144, VCores: 1, GPUs: 2}}, clusterView{nodes: []hadoop.Node{inUse(1, 0, 4), withUsed(inUse(2, 0, 0), 4096)}, hasRoom: true, headroom: big},
			[]string{"no node has 6 GB, 1 vcore, 2 GPUs free at the same time for worker; it goes on when other containers end"}},
		{"nodes full that have no other task of the role", asks("ps", 0, 1, 6144), clusterView{nodes: []hadoop.Node{node(1, 8192, 6144), node(2, 8192, 6144), node(3, 8192, 8192)}, hasRoom: true, headroom: big,
			held: hadoop.Resource{MemoryMB: 2 * 6144}, occupied: func(_ action.Ask, host string) bool { return host != "n3" },
			place: placement{spec: &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps", Spread: true}}}}},
			[]string{"no node has 6 GB, 1 vcore free now for ps, of those that it may be on (--ps-spread); the most is nothing on n3; it goes on when other containers end"}},
		{"nothing known", asks("ps", 0, 1, 1024), clusterView{}, []string{"the ResourceManager has not given them yet"}},
		{"room", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasRoom: true, headroom: big}, []string{"there is room"}},
		{"queue stopped", asks("ps", 0, 1, 1024), clusterView{nodes: []hadoop.Node{node(1, 8192, 0)}, hasQueue: true, queue: hadoop.Queue{Name: "q"}}, []string{`"q" is stopped`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := explain(tt.asks, tt.view)
			for _, w := range tt.want {
				if !strings.Contains(got, w) {
					t.Errorf("%q does not say %q", got, w)
				}
			}
		})
	}
	if got := explain(nil, clusterView{}); got != "" {
		t.Errorf("nothing is waited for, and it says %q", got)
	}
}

// It does not depend on who was told first, the node or the ResourceManager.
func TestReasonsOfEndsAreTold(t *testing.T) {
	const said = "[2026-11-25 10:00:00.000]Container killed on request. Exit code is 137\n[2026-11-25 10:00:00.001]Container exited with a non-zero exit code 137. \n"
	d := quietDriver(t)
	d.attempt = 2
	a := d.s.add(container(2, 1))
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{
		{ID: a.container.ID, Exit: exitForceKilled, Diagnostics: said}, {ID: container(7, 1).ID, Exit: exitForceKilled, Diagnostics: said},
		{ID: container(8, 1).ID, Exit: 154, Diagnostics: notRecovered},
	}}})
	expect(t, d.emitted(), "Diagnostics:Container killed on request. Exit code is 137}", "Diagnostics:Container killed on request. Exit code is 137}",
		"Diagnostics:its NodeManager was restarted and does not know what has become of it}")
}

// TestWhatEndsIsNotNeeded: a container that is given back is not part of what the job needs in
// all, so that its successor may have the room.
func TestWhatEndsIsNotNeeded(t *testing.T) {
	d := quietDriver(t)
	d.execute([]any{asks("ps", 0, 1, 4096)[0]})
	before := container(2, 1)
	before.Resource = hadoop.Resource{MemoryMB: 4096, VCores: 1}
	d.s.add(before).released = true
	d.s.allocatedAt = time.Now().Add(-time.Minute)
	d.afterInspection(inspection{at: time.Now(), view: clusterView{nodes: []hadoop.Node{node(1, 6144, 4096)}}})
	expect(t, d.emitted(), "the most is 2 GB on n1; it goes on when other containers end")
}
