package yarn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protowire"
	wire "google.golang.org/protobuf/proto"

	"holdfast/am/core/event"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/internal/mailbox"
	"holdfast/proto"
)

// quietDriver has no cluster: a test gives it the RM's answers.
func quietDriver(t *testing.T) *Driver {
	t.Helper()
	log := logrus.New()
	log.SetOutput(io.Discard)
	ctx := t.Context()
	nodes, err := hadoop.NewNodes(conf.New(nil), rpc.Retry{})
	if err != nil {
		t.Fatal(err)
	}
	d := &Driver{
		log: logrus.NewEntry(log), s: newState(), events: mailbox.New[event.Event](), superseded: make(chan error, 1), ctx: ctx,
		nodes: nodes, reg: hadoop.Registered{Maximum: hadoop.Resource{MemoryMB: 8192, VCores: 4}},
	}
	t.Cleanup(func() {
		if err := d.nodes.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// emitted returns the events so far, and that the master was superseded.
func (d *Driver) emitted() []string {
	var list []string
	for _, e := range d.events.Take() {
		switch e := e.(type) {
		case event.Broken:
			list = append(list, "broken: "+e.Why)
		default:
			list = append(list, fmt.Sprintf("%T %+v", e, e))
		}
	}
	select {
	case err := <-d.superseded:
		list = append(list, "superseded: "+err.Error())
	default:
	}
	return list
}

func container(n int64, priority int32) hadoop.Container {
	return hadoop.Container{
		ID:   hadoop.ContainerID{Attempt: hadoop.AttemptID{Application: hadoop.ApplicationID{Cluster: 1, Number: 1}, Number: 1}, Number: n},
		Node: hadoop.NodeID{Host: "n1", Port: 1}, Priority: priority,
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("emitted %q, want %q", got, want)
	}
	for i := range got {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("emitted %q, want %q", got[i], want[i])
		}
	}
}

func TestDriverGivesBackWhatNobodyWants(t *testing.T) {
	d := quietDriver(t)
	d.execute([]any{asks("ps", 0, 1, 1024)[0]})
	d.heartbeat(time.Now())
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1), container(3, 1)}}})
	expect(t, d.emitted(), "Allocated {Request:ps-0 Container:container_1_0001_01_000002 Node:n1}")
	h := d.heartbeat(time.Now())
	if len(h.Release) != 1 || h.Release[0].Number != 3 {
		t.Fatalf("released: %v", h.Release)
	}
	// The call is lost: it is released again, not forgotten.
	d.afterAllocate(allocated{err: errors.New("something odd")})
	if h = d.heartbeat(time.Now()); len(h.Release) != 1 || h.Release[0].Number != 3 {
		t.Fatalf("released after a lost call: %v", h.Release)
	}
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{{ID: container(3, 1).ID, Exit: exitAborted}}}})
	if h = d.heartbeat(time.Now()); len(h.Release) != 0 {
		t.Errorf("released what has ended: %v", h.Release)
	}
	expect(t, d.emitted())
}

func TestDriverReleasesBeforeLaunch(t *testing.T) {
	d := quietDriver(t)
	d.execute([]any{asks("ps", 0, 1, 1024)[0]})
	d.heartbeat(time.Now())
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1)}}})
	name := container(2, 1).ID.String()
	d.execute([]any{release(name), release(name), launch(name), release("container_1_0001_01_000009")})
	if h := d.heartbeat(time.Now()); len(h.Release) != 1 {
		t.Fatalf("released: %v", h.Release)
	}
	ended := hadoop.Completed{ID: container(2, 1).ID, Exit: exitAborted, Diagnostics: "Container released by application"}
	for range 2 { // the RM may say so twice, after it was restarted
		d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{ended}}})
	}
	expect(t, d.emitted(), "Allocated", fmt.Sprintf("Ended {Container:%s Cause:%v", name, event.CauseReleased))
}

func TestDriverTellsAnEndOnce(t *testing.T) {
	d := quietDriver(t)
	h := d.s.add(container(2, 1))
	h.launched, h.released, h.releaseAt = true, true, time.Now()
	d.afterStop(stopResult{ended: []hadoop.Completed{{ID: h.container.ID, Exit: 143}}})
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{{ID: h.container.ID, Exit: 143}}}})
	expect(t, d.emitted(), fmt.Sprintf("Ended {Container:%s Cause:%v Exit:143", h.name, event.CauseReleased))
	if len(d.s.held) != 0 {
		t.Errorf("still held: %v", d.s.held)
	}
}

// TestAContainerThatIsStartedLateIsEndedAtItsNode: it has the time for that which all have, even
// if it was given back while its node took long to start it.
func TestAContainerThatIsStartedLateIsEndedAtItsNode(t *testing.T) {
	d := quietDriver(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so no node is called
	d.ctx, d.results = ctx, make(chan any, 1)
	h := d.s.add(container(2, 1))
	h.launching, h.released, h.releaseAt = true, true, time.Now().Add(-2*stopTimeout)
	d.afterStart(startResult{ids: []hadoop.ContainerID{h.container.ID}})
	d.releaseOverdue(time.Now())
	if h.releasedAtRM {
		t.Error("its end is reported by the ResourceManager before it has ended")
	}
	if d.releaseOverdue(time.Now().Add(2 * stopTimeout)); !h.releasedAtRM {
		t.Error("it is never given back")
	}
	d.wg.Wait()
}

// TestAFailedLaunchKeepsNoNode: from a task that may not share one, though a ResourceManager that
// was restarted never reports the end of a container that the one before it had given.
func TestAFailedLaunchKeepsNoNode(t *testing.T) {
	d := quietDriver(t)
	d.s.table.place.spec = &proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "ps", Spread: true}}}
	d.s.setNodes([]hadoop.Node{node(1, 8192, 0)}, time.Now())
	for _, a := range asks("ps", 0, 2, 1024) {
		d.execute([]any{a})
	}
	d.heartbeat(time.Now())
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1)}}})
	h := d.s.byID[container(2, 1).ID]
	h.launching = true
	if d.heartbeat(time.Now()); len(d.s.table.usable(d.s.table.groups[0])) != 0 {
		t.Fatal("two tasks may be on one node")
	}
	d.afterAllocate(allocated{answer: &hadoop.Answer{}})
	d.afterStart(startResult{ids: []hadoop.ContainerID{h.container.ID}, err: errors.New("allocated by a previous RM")})
	var named []string
	for _, r := range d.heartbeat(time.Now()).Requests {
		if r.Count > 0 {
			named = append(named, r.Place)
		}
	}
	if !slices.Contains(named, "n1") {
		t.Errorf("the other task is asked for at %v", named)
	}
}

func TestDriverReportsALaunchThatFailed(t *testing.T) {
	d := quietDriver(t)
	a, b := d.s.add(container(2, 1)), d.s.add(container(3, 1))
	a.launching, b.launching = true, true
	d.afterStart(startResult{ids: []hadoop.ContainerID{a.container.ID, b.container.ID}, failed: map[hadoop.ContainerID]error{b.container.ID: errors.New("no disk")}})
	if !a.launched {
		t.Error("the one that was started does not count as launched")
	}
	if g := d.heartbeat(time.Now()).Release; len(g) != 1 || g[0] != b.container.ID {
		t.Errorf("given back: %v", g)
	}
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: []hadoop.Completed{{ID: b.container.ID, Exit: exitAborted}}}})
	expect(t, d.emitted(), "LaunchFailed {Container:"+b.name+" Why:no disk}")
}

func TestDriverGivesUpOnlyWhenItMust(t *testing.T) {
	remote := func(class string) error {
		return fmt.Errorf("ask the scheduler: %w", &rpc.RemoteError{Class: class, Message: "because"})
	}
	const yarn = "org.apache.hadoop.yarn.exceptions."
	for _, tt := range []struct {
		name string
		err  error
		want []string
	}{
		{"attempt gone", remote(yarn + "ApplicationAttemptNotFoundException"), []string{"superseded: the ResourceManager has given up"}},
		{"refused", remote(yarn + "InvalidResourceRequestException"), []string{"broken: the scheduler refused"}},
		{"token refused", remote("org.apache.hadoop.security.token.SecretManager$InvalidToken"), []string{"superseded: the ResourceManager has given up"}},
		{"not let in", remote("org.apache.hadoop.security.AccessControlException"), []string{"broken: the ResourceManager does not let"}},
		{"restarted", remote(yarn + "ApplicationMasterNotRegisteredException"), nil},
		{"standby", remote("org.apache.hadoop.ipc.StandbyException"), []string{"Waiting {Why:the ResourceManager has not answered since"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := quietDriver(t)
			d.execute([]any{asks("ps", 0, 1, 1024)[0]})
			before := d.heartbeat(time.Now())
			d.afterAllocate(allocated{err: tt.err})
			expect(t, d.emitted(), tt.want...)
			if after := d.heartbeat(time.Now()); len(after.Requests) != len(before.Requests) {
				t.Errorf("after the error it asks %+v, before it was %+v", after.Requests, before.Requests)
			}
		})
	}
	d := quietDriver(t)
	for range 12 {
		d.afterAllocate(allocated{err: errors.New("odd")})
	}
	expect(t, d.emitted(), "broken: the scheduler answered 10 times in a row with an error: odd")
}

// What runs needs no ResourceManager: once that has served the job, only its word
// that the application is over ends it.
func TestDriverOutlastsTheResourceManager(t *testing.T) {
	remote := func(class string) error {
		return fmt.Errorf("ask the scheduler: %w", &rpc.RemoteError{Class: class, Message: "because"})
	}
	for _, tt := range []struct {
		name string
		err  error
		says string
	}{
		{"not there", remote("org.apache.hadoop.ipc.StandbyException"), "the ResourceManager has not answered since"},
		{"not well", errors.New("odd"), "the ResourceManager has answered with an error since"},
		{"not let in", remote("org.apache.hadoop.security.AccessControlException"), "the ResourceManager has answered with an error since"},
		{"smaller", remote("org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException"), "the scheduler refuses 1 container for ps"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := quietDriver(t)
			d.execute([]any{asks("ps", 0, 1, 1024)[0]})
			d.heartbeat(time.Now())
			d.afterAllocate(allocated{answer: &hadoop.Answer{}})
			if got := d.emitted(); len(got) != 0 {
				t.Fatalf("emitted %q", got)
			}
			for range 100 {
				d.s.table.resend()
				d.heartbeat(time.Now())
				d.afterAllocate(allocated{err: tt.err})
			}
			if d.s.broken {
				t.Error("it gives up")
			}
			expect(t, d.emitted(), "Waiting {Why:"+tt.says)
			// Where the RM is well again, that is said, and asked for is what was.
			d.s.resend()
			d.s.table.retryRefused()
			if h := d.heartbeat(time.Now()); len(h.Requests) != 1 || h.Requests[0].Count != 1 {
				t.Errorf("it asks %+v", h.Requests)
			}
			d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1)}}})
			var said []string
			for _, e := range d.emitted() {
				said = append(said, strings.Fields(e)[0])
			}
			if want := []string{"event.Waiting", "event.Allocated"}; !slices.Contains(said, want[0]) || !slices.Contains(said, want[1]) {
				t.Errorf("then it tells %q", said)
			}
		})
	}
}

// A maximum that is smaller for a while holds up no asks but those that exceed it.
func TestDriverAsksForTheRestOfWhatIsRefused(t *testing.T) {
	refusal := fmt.Errorf("ask the scheduler: %w", &rpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.InvalidResourceRequestException", Message: "too large"})
	d := quietDriver(t)
	d.execute([]any{asks("ps", 0, 1, 1024)[0]})
	now := time.Now()
	d.heartbeat(now)
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1)}}})
	d.reg.Maximum = hadoop.Resource{MemoryMB: 2048, VCores: 4} // after the RM was restarted
	d.execute([]any{asks("worker", 0, 1, 4096)[0], asks("ps", 1, 1, 1024)[0], asks("chief", 0, 1, 512)[0]})
	granted := map[int32]bool{}
	probes := 0
	for range 60 {
		now = now.Add(time.Second)
		h := d.heartbeat(now)
		answer := allocated{answer: &hadoop.Answer{}}
		for _, r := range h.Requests {
			switch {
			case r.Resource.MemoryMB > 2048 && r.Count > 0:
				answer = allocated{err: refusal}
				probes++
			case r.Count > 0 && answer.err == nil:
				granted[r.Priority] = true
			}
		}
		d.afterAllocate(answer)
	}
	if d.s.broken || !granted[1] || !granted[3] || granted[2] {
		t.Errorf("broken %t, granted %v", d.s.broken, granted)
	}
	if probes < 5 || probes > 20 {
		t.Errorf("what is refused was asked for %d times in a minute", probes)
	}
	var said []string
	for _, e := range d.emitted() {
		if strings.HasPrefix(e, "event.Waiting") {
			said = append(said, e)
		}
	}
	expect(t, said, "the scheduler refuses 1 container for worker")
}

func TestAgentsGetOnlyTheirSecrets(t *testing.T) {
	all := token.New()
	for _, kind := range []string{token.KindAMRM, token.KindNM, token.KindRM, token.KindHDFS} {
		all.Tokens[kind] = token.Token{Kind: kind}
	}
	for _, s := range []string{proto.SecretMaster, proto.SecretAgent, proto.SecretClient, proto.SecretConf} {
		all.Secrets[s] = []byte("x")
	}
	c := agentCredentials(all)
	if len(c.Tokens) != 1 || c.Tokens[token.KindHDFS].Kind != token.KindHDFS {
		t.Errorf("an agent gets the tokens %v", c.Tokens)
	}
	if len(c.Secrets) != 1 || c.Secrets[proto.SecretConf] == nil {
		t.Errorf("an agent gets the secrets %v", c.Secrets)
	}
	if len(all.Tokens) != 4 || len(all.Secrets) != 4 {
		t.Error("the AM's own credentials were changed")
	}
	t.Setenv("HADOOP_USER_NAME", "ann")
	env := environment(Config{Conf: conf.New(nil), Job: "j", JobDirectory: "d", Master: "m:1"})
	for k, v := range map[string]string{proto.EnvJob: "j", proto.EnvJobDirectory: "d", proto.EnvMaster: "m:1", "HADOOP_USER_NAME": "ann"} {
		if env[k] != v {
			t.Errorf("an agent sees %s=%q, not %q", k, env[k], v)
		}
	}
}

func TestPaceFollowsNeed(t *testing.T) {
	now := time.Now()
	s := newState()
	if got := s.heartbeatInterval(now); got != time.Second {
		t.Errorf("with nothing to wait for: %v", got)
	}
	s.ask(asks("ps", 0, 1, 1024)[0], now)
	if got := s.heartbeatInterval(now); got > 20*time.Millisecond {
		t.Errorf("with an ask: %v", got)
	}
	if got := s.heartbeatInterval(now.Add(10 * time.Second)); got < 50*time.Millisecond || got > 100*time.Millisecond {
		t.Errorf("with an ask that waits for ten seconds: %v", got)
	}
	if got := s.heartbeatInterval(now.Add(time.Hour)); got != time.Second {
		t.Errorf("with an ask that waits for an hour: %v", got)
	}
	// The list of the cluster's nodes may be long.
	d := quietDriver(t)
	d.results = make(chan any, 1)
	for _, tt := range []struct {
		waited, since time.Duration
		inspects      bool
	}{
		{10 * time.Second, 500 * time.Millisecond, false}, {10 * time.Second, 1500 * time.Millisecond, true},
		{time.Minute, 1500 * time.Millisecond, false}, {time.Minute, 6 * time.Second, true},
		{time.Hour, 6 * time.Second, false}, {time.Hour, 16 * time.Second, true},
	} {
		d.s = newState()
		d.s.ask(asks("ps", 0, 1, 1024)[0], now)
		at := now.Add(tt.waited)
		d.s.inspectedAt = at.Add(-tt.since)
		if d.inspect(at); d.s.inspecting != tt.inspects {
			t.Errorf("with an ask that waits for %v, and %v after an inspection, there is another: %t", tt.waited, tt.since, d.s.inspecting)
		}
		if d.s.inspecting {
			<-d.results
		}
	}
	d.s = newState()
	d.s.ask(asks("ps", 0, 1, 1024)[0], now.Add(-time.Hour))
	d.s.inspectedAt = now.Add(-1500 * time.Millisecond)
	d.updateNodes([]hadoop.Node{node(1, 8192, 0)})
	if d.inspect(time.Now()); d.s.inspecting {
		<-d.results
	} else {
		t.Error("after a change of nodes, there is no inspection soon")
	}
	s = newState()
	s.suspectedAt = now
	if got := s.heartbeatInterval(now); got > 20*time.Millisecond {
		t.Errorf("with a container that may have ended: %v", got)
	}
}

func TestDriverTellsWhatIsAnnounced(t *testing.T) {
	d := quietDriver(t)
	d.warning = 15 * time.Second
	a, b, gone := d.s.add(container(2, 1)), d.s.add(container(3, 1)), d.s.add(container(4, 1))
	gone.released = true
	node := func(state string) hadoop.Node {
		return hadoop.Node{ID: hadoop.NodeID{Host: "n1", Port: 1}, State: state, Timeout: time.Minute}
	}
	for _, answer := range []hadoop.Answer{
		{Updated: []hadoop.Node{node("RUNNING")}},
		{Updated: []hadoop.Node{node("DECOMMISSIONING")}},
		{Updated: []hadoop.Node{node("DECOMMISSIONING")}},
		{Updated: []hadoop.Node{node("DECOMMISSIONED")}},
		{Updated: []hadoop.Node{node("RUNNING")}},
		{Preempt: hadoop.Preemption{
			Strict:     []hadoop.ContainerID{a.container.ID, gone.container.ID},
			Negotiable: []hadoop.ContainerID{b.container.ID, container(9, 1).ID}, Resources: hadoop.Resource{MemoryMB: 1024},
		}},
		{Preempt: hadoop.Preemption{Negotiable: []hadoop.ContainerID{gone.container.ID}}},
		{Preempt: hadoop.Preemption{Negotiable: []hadoop.ContainerID{b.container.ID}}},
	} {
		d.afterAllocate(allocated{answer: &answer})
	}
	expect(t, d.emitted(), "NodeDecommissioning {Node:n1 Within:1m0s HostsAM:false}", "NodeRecommissioned {Node:n1}",
		"PreemptionWarned {Containers:["+a.name+"] Strict:true Within:15s}", "PreemptionWarned {Containers:["+b.name+"] Strict:false Within:15s}",
		"PreemptionWarned {Containers:["+b.name+"] Strict:true Within:15s}") // it names no resources that others could have
}

// TestDriverFindsNodesThatAreInServiceAgain: the list of the cluster's nodes says so, where it
// was asked for after the node was to be taken out.
func TestDriverFindsNodesThatAreInServiceAgain(t *testing.T) {
	d := quietDriver(t)
	node := func(host, state string, port int32) hadoop.Node {
		return hadoop.Node{ID: hadoop.NodeID{Host: host, Port: port}, State: state}
	}
	before := time.Now()
	d.afterAllocate(allocated{answer: &hadoop.Answer{Updated: []hadoop.Node{node("n1", "DECOMMISSIONING", 1), node("n2", "DECOMMISSIONING", 1)}}})
	d.emitted()
	look := func(at time.Time, list ...hadoop.Node) []string {
		d.afterInspection(inspection{at: at, view: clusterView{nodes: list}})
		return d.emitted()
	}
	after := func() time.Time { return time.Now().Add(time.Second) }
	expect(t, look(before, node("n1", "RUNNING", 1), node("n2", "RUNNING", 1)))
	expect(t, look(after(), node("n1", "DECOMMISSIONED", 1), node("n2", "DECOMMISSIONING", 1), node("n2", "RUNNING", 2), node("n3", "RUNNING", 1)))
	expect(t, look(after(), node("n1", "DECOMMISSIONED", 1), node("n1", "RUNNING", 2), node("n2", "DECOMMISSIONING", 1)), "NodeRecommissioned {Node:n1}")
	expect(t, look(after(), node("n1", "RUNNING", 2), node("n2", "RUNNING", 1)), "NodeRecommissioned {Node:n2}")
	expect(t, look(after(), node("n1", "RUNNING", 2), node("n2", "RUNNING", 1)))
}

// TestOnlyARestartedRMTakesPreemptionBack: the CapacityScheduler names a container in
// one answer only, and takes it all the same.
func TestOnlyARestartedRMTakesPreemptionBack(t *testing.T) {
	d := quietDriver(t)
	d.warning = 15 * time.Second
	a, b, gone := d.s.add(container(2, 1)), d.s.add(container(3, 1)), d.s.add(container(4, 1))
	d.s.add(container(5, 1))
	d.afterAllocate(allocated{answer: &hadoop.Answer{Preempt: hadoop.Preemption{
		Strict: []hadoop.ContainerID{a.container.ID}, Negotiable: []hadoop.ContainerID{b.container.ID, gone.container.ID}, Resources: hadoop.Resource{MemoryMB: 2048},
	}}})
	for range 3 {
		d.afterAllocate(allocated{answer: &hadoop.Answer{}})
	}
	gone.released = true
	announced := []string{"PreemptionWarned {Containers:[" + a.name + "] Strict:true", "PreemptionWarned {Containers:[" + b.name + " " + gone.name + "] Strict:false"}
	expect(t, d.emitted(), announced...)
	for range 2 {
		d.afterRegister(reregistered{})
	}
	expect(t, d.emitted(), "PreemptionCanceled {Containers:["+a.name+" "+b.name+"] Why:the ResourceManager was restarted}")
	d.afterAllocate(allocated{answer: &hadoop.Answer{Preempt: hadoop.Preemption{Strict: []hadoop.ContainerID{a.container.ID}}}})
	expect(t, d.emitted(), "PreemptionWarned {Containers:["+a.name+"] Strict:true")
}

// TestDriverTellsOfUnhealthyNodes: YARN says no more than that their containers
// were on a lost node.
func TestDriverTellsOfUnhealthyNodes(t *testing.T) {
	d := quietDriver(t)
	a, b := d.s.add(container(2, 1)), d.s.add(container(3, 1))
	lost := func(h *held) []hadoop.Completed {
		return []hadoop.Completed{{ID: h.container.ID, Exit: exitAborted, Diagnostics: "Container released on a *lost* node"}}
	}
	n := hadoop.Node{ID: a.container.Node, State: "UNHEALTHY", Health: "it smells of smoke\n"}
	d.afterAllocate(allocated{answer: &hadoop.Answer{Updated: []hadoop.Node{n}, Completed: lost(a)}})
	n.State = "RUNNING"
	d.afterAllocate(allocated{answer: &hadoop.Answer{Updated: []hadoop.Node{n}}})
	d.afterAllocate(allocated{answer: &hadoop.Answer{Completed: lost(b)}})
	expect(t, d.emitted(), fmt.Sprintf("Ended {Container:%s Cause:%v Exit:-100 Diagnostics:its node is unhealthy: it smells of smoke}", a.name, event.CauseNodeLost),
		fmt.Sprintf("Ended {Container:%s Cause:%v Exit:-100 Diagnostics:Container released on a *lost* node}", b.name, event.CauseNodeLost))
}

// TestDriverTakesNothingItDidNotAskFor: containers that nodes may stop at any
// time are given back; one that was changed is started with its new token.
func TestDriverTakesNothingItDidNotAskFor(t *testing.T) {
	d := quietDriver(t)
	d.execute([]any{asks("ps", 0, 1, 1024)[0]})
	d.heartbeat(time.Now())
	loose := container(2, 1)
	loose.Opportunistic = true
	mine, changed, foreign := container(3, 1), container(3, 1), container(9, 1)
	changed.Token.Password = []byte("new")
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{loose, mine}}})
	d.afterAllocate(allocated{answer: &hadoop.Answer{Changed: []hadoop.Container{changed, foreign}}})
	h := d.heartbeat(time.Now())
	if len(h.Release) != 2 || h.Release[0] != loose.ID || h.Release[1] != foreign.ID {
		t.Errorf("released: %v", h.Release)
	}
	if got := d.s.byID[mine.ID].container; string(got.Token.Password) != "new" {
		t.Errorf("the container's token is still the old one: %+v", got)
	}
	expect(t, d.emitted(), "Allocated {Request:ps-0 Container:"+mine.ID.String())
}

// TestARefusalIsLookedInto: only what the RM knows of the application tells
// whether the job goes on without this master.
func TestARefusalIsLookedInto(t *testing.T) {
	refusal := &rpc.RemoteError{Class: "org.apache.hadoop.security.token.SecretManager$InvalidToken", Message: "appattempt_1_0001_000001 not found"}
	unknown := &rpc.RemoteError{Class: "org.apache.hadoop.yarn.exceptions.ApplicationNotFoundException"}
	for _, tt := range []struct {
		name     string
		standing applicationReport
		want     []string
	}{
		{"another attempt", applicationReport{report: hadoop.Report{Attempt: 2, State: hadoop.StateRunning}}, []string{"superseded: the ResourceManager has given up"}},
		{"killed", applicationReport{report: hadoop.Report{Attempt: 1, State: hadoop.StateKilled}}, []string{"superseded: the ResourceManager has given up"}},
		{"forgotten", applicationReport{err: unknown}, []string{"broken: the ResourceManager does not know the application any longer"}},
		{"no other attempt yet", applicationReport{report: hadoop.Report{Attempt: 1, State: hadoop.StateRunning}}, []string{"superseded: the ResourceManager has given up"}},
		{"not known", applicationReport{err: errors.New("no answer")}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := quietDriver(t)
			tt.standing.refusal = refusal
			d.afterApplicationReport(tt.standing)
			expect(t, d.emitted(), tt.want...)
		})
	}
}

// refusingRM is a scheduler that refuses each login with the exception that class returns for
// the nth of them, from 1. The driver's master retries for 20 ms by itself.
func refusingRM(t *testing.T, d *Driver, class func(n int) string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var b [4]byte
			_, _ = io.ReadFull(c, make([]byte, 7)) // the connection's header
			_, _ = io.ReadFull(c, b[:])
			_, _ = io.CopyN(io.Discard, c, int64(binary.BigEndian.Uint32(b[:])))
			exception := class(n)
			h, err := wire.Marshal(&common.RpcResponseHeaderProto{
				CallId: wire.Uint32(1<<32 - 33), Status: common.RpcResponseHeaderProto_FATAL.Enum(), ExceptionClassName: &exception, ErrorMsg: wire.String("because"),
			})
			if err != nil {
				panic(err)
			}
			h = protowire.AppendBytes(nil, h)
			_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(h))), h...))
			c.Close()
		}
	}()
	d.cfg.Conf = conf.New(map[string]string{
		"yarn.resourcemanager.scheduler.address": l.Addr().String(),
		"yarn.resourcemanager.address":           "127.0.0.1:1", // where nobody listens
	})
	d.cfg.Credentials, d.cfg.Job = token.New(), container(1, 0).ID.Attempt.Application.String()
	d.cfg.Credentials.Tokens["amrm"] = token.Token{Kind: token.KindAMRM, Identifier: []byte("i"), Password: []byte("p")}
	if d.master, err = hadoop.NewMaster(d.cfg.Conf, d.cfg.Credentials, rpc.Retry{Limit: 20 * time.Millisecond, Pause: time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if d.client, err = hadoop.NewClient(d.cfg.Conf, hadoop.Options{User: "amy", Retry: rpc.Retry{Limit: -1}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = d.master.Close(), d.client.Close() })
}

const invalidToken = "org.apache.hadoop.security.token.SecretManager$InvalidToken"

// TestRefusedHeartbeatsArePaced: a ResourceManager that refuses a heartbeat is not asked again
// at once for what it has not taken in, for as long as it is not known why it refuses.
func TestRefusedHeartbeatsArePaced(t *testing.T) {
	d := quietDriver(t)
	d.commands, d.results = mailbox.New[any](), make(chan any, 16)
	ctx, cancel := context.WithCancel(t.Context())
	d.ctx = ctx
	refusals := make(chan time.Time, 1000)
	refusingRM(t, d, func(int) string {
		refusals <- time.Now()
		return invalidToken
	})
	d.Ask(asks("ps", 0, 1, 1024)[0])
	d.wg.Go(d.run)
	defer d.wg.Wait()
	defer cancel()
	var at []time.Time
	for len(at) < 4 {
		select {
		case now := <-refusals:
			at = append(at, now)
		case <-time.After(time.Minute):
			t.Fatalf("after %d heartbeats there are no more", len(at))
		}
	}
	if took := at[3].Sub(at[1]); took < 1500*time.Millisecond {
		t.Errorf("three heartbeats within %v", took)
	}
	expect(t, d.emitted()) // it does not give up
}

// TestTheOutcomeIsToldWhenTheRMServesAgain: whichever way one says that it does not serve now.
func TestTheOutcomeIsToldWhenTheRMServesAgain(t *testing.T) {
	for _, class := range []string{"org.apache.hadoop.ipc.StandbyException", "org.apache.hadoop.ipc.RetriableException"} {
		d := quietDriver(t)
		const served = 30
		var seen atomic.Int32
		refusingRM(t, d, func(n int) string {
			if seen.Store(int32(n)); n < served {
				return class
			}
			return invalidToken // the application was ended meanwhile
		})
		if err := d.tellOutcome(t.Context(), hadoop.FinalSucceeded, ""); !errors.Is(err, hadoop.ErrGone) || seen.Load() != served {
			t.Errorf("%s: %v, after %d logins", class, err, seen.Load())
		}
	}
}

// TestASuccessorIsNoticed: while the RM does not answer, a master leaves the job to the
// next one, or where it cannot know whether there is one for too long.
func TestASuccessorIsNoticed(t *testing.T) {
	for name, tt := range map[string]struct {
		heard, sure time.Duration // how long ago
		attempt     int           // that has announced itself
		err         error
		leaves      string
	}{
		"another master":            {time.Minute, time.Minute, 2, nil, "attempt 2 has announced itself"},
		"itself":                    {time.Minute, time.Minute, 1, nil, ""},
		"nobody knows":              {time.Minute, time.Minute, 2, errors.New("no answer"), ""},
		"nobody has known for long": {time.Hour, 9 * time.Minute, 1, errors.New("no answer"), "neither the ResourceManager nor the job's directory"},
		"it comes to after long":    {time.Hour, time.Hour, 1, nil, ""},
		"the RM answered lately":    {0, time.Second, 2, nil, ""},
		"the RM has been away long": {time.Hour, time.Second, 1, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := quietDriver(t)
			d.attempt, d.expiry, d.results = 1, 10*time.Minute, make(chan any, 1)
			d.cfg.LatestAttempt = func(context.Context) (int, error) { return tt.attempt, tt.err }
			now := time.Now()
			d.s.answeredAt, d.s.soleMasterAt = now.Add(-tt.heard), now.Add(-tt.sure)
			d.checkSuccessor(now)
			d.wg.Wait()
			select {
			case r := <-d.results:
				d.afterSuccessorCheck(r.(successorCheck))
			default:
			}
			switch got := d.emitted(); {
			case tt.leaves == "" && len(got) != 0, tt.leaves != "" && (len(got) != 1 || !strings.Contains(got[0], tt.leaves)):
				t.Errorf("emitted %q", got)
			}
			if known := tt.err == nil && tt.attempt == 1; known != (d.s.soleMasterAt.Equal(now)) {
				t.Errorf("sure %s ago", now.Sub(d.s.soleMasterAt))
			}
		})
	}
}

func TestDriverTellsWhatContainersWaitFor(t *testing.T) {
	d := quietDriver(t)
	d.results = make(chan any, 4)
	d.agent.Resources = []hadoop.LocalResource{{URI: "hdfs://n/bin/yarn-submit"}, {URI: "hdfs://n/a/venv.zip", Archive: true, Size: 4 << 30}}
	a, released := d.s.add(container(2, 1)), d.s.add(container(3, 1))
	released.released = true
	d.afterLocalizing(localizing{node: a.container.Node, ids: []hadoop.ContainerID{a.container.ID, released.container.ID, container(9, 1).ID}})
	expect(t, d.emitted(), "Localizing {Container:"+a.name+" What:is fetching and unpacking venv.zip (4 GB)}")
}

// TestANodeThatDoesNotAnswerIsAskedAgain: it may be busy with what it localizes.
func TestANodeThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	d := quietDriver(t)
	ctx, cancel := context.WithCancel(t.Context())
	d.ctx, d.results = ctx, make(chan any, 1)
	defer d.wg.Wait()
	defer cancel()
	nodes, err := hadoop.NewNodes(conf.New(nil), rpc.Retry{Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	d.nodes = nodes // closed by quietDriver
	c := container(2, 1)
	c.Node = hadoop.NodeID{Host: "127.0.0.1", Port: 1} // where nobody listens
	d.nodes.Learn([]hadoop.NMToken{{Node: c.Node, Token: token.Token{Identifier: []byte("i"), Password: []byte("p")}}})
	d.s.add(c)
	d.watchLocalizing(c.Node, []hadoop.ContainerID{c.ID}, 0)
	for range 2 {
		select {
		case r := <-d.results:
			d.afterLocalizing(r.(localizing))
		case <-time.After(4 * localizingInterval):
			t.Fatal("it is not asked again")
		}
	}
	expect(t, d.emitted())
}

// TestDriverTellsWhatIsFoundAgain: a restarted RM knows of a container once its node has
// registered, which may be after this master has.
func TestDriverTellsWhatIsFoundAgain(t *testing.T) {
	d := quietDriver(t)
	there := container(2, 1)
	for range 2 {
		d.afterAllocate(allocated{answer: &hadoop.Answer{Previous: []hadoop.Container{there}}})
	}
	expect(t, d.emitted(), "ContainerFound {Container:"+there.ID.String()+" Node:n1}")
	if h := d.heartbeat(time.Now()); len(h.Release) != 0 || d.s.byID[there.ID] == nil {
		t.Errorf("released: %v", h.Release)
	}
}

// TestARestartedRMMayKnowMore: than what this master has, as of a container of an earlier attempt
// whose node has registered with the RM before this master has. No answer to a heartbeat says so.
func TestARestartedRMMayKnowMore(t *testing.T) {
	d := quietDriver(t)
	had := d.s.add(container(2, 1))
	d.afterRegister(reregistered{reg: hadoop.Registered{Previous: []hadoop.Container{had.container, container(3, 1)}}})
	expect(t, d.emitted(), "ContainerFound {Container:"+container(3, 1).ID.String()+" Node:n1}")
	d.afterAllocate(allocated{answer: &hadoop.Answer{Previous: []hadoop.Container{container(3, 1)}}})
	expect(t, d.emitted())
	if d.s.byID[had.container.ID] != had {
		t.Error("what it had is another")
	}
	// It is then given back at its node.
	if h := d.s.byID[container(3, 1).ID]; h == nil || !h.launched {
		t.Errorf("it is %+v", h)
	}
}

// TestLimitsOutliveALostAnswer: nothing else is known where the answer to a registration
// was lost, and the job goes on by what it knew.
func TestLimitsOutliveALostAnswer(t *testing.T) {
	d := quietDriver(t)
	before := d.reg.Maximum
	d.afterRegister(reregistered{reg: hadoop.Registered{Lost: true}})
	if !d.reg.Maximum.Equal(before) {
		t.Errorf("the largest container was %v, and is %v", before, d.reg.Maximum)
	}
	expect(t, d.emitted())
}

// TestLogsOfContainers: of each container that the job gets it is told where its NodeManager
// shows its logs, before anybody can be told of the container.
func TestLogsOfContainers(t *testing.T) {
	d := quietDriver(t)
	var told []string
	d.s.added = func(c hadoop.Container) { told = append(told, fmt.Sprint(c.ID, " after ", d.events.Take())) }
	d.execute([]any{asks("ps", 0, 1, 1024)[0]})
	d.heartbeat(time.Now())
	d.afterAllocate(allocated{answer: &hadoop.Answer{Allocated: []hadoop.Container{container(2, 1)}}})
	expect(t, told, "container_1_0001_01_000002 after []")
	expect(t, d.emitted(), "Allocated")
	for policy, want := range map[string]string{
		"HTTP_ONLY":  "http://n1:8042/node/containerlogs/container_1_0001_01_000002/amy",
		"HTTPS_ONLY": "https://n1:8042/node/containerlogs/container_1_0001_01_000002/amy",
	} {
		c := conf.New(map[string]string{"yarn.http.policy": policy})
		if got := LogsURL(c, "n1:8042", "container_1_0001_01_000002", "amy"); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
		if got := LogsURL(c, "", "container_1_0001_01_000002", "amy"); got != "" {
			t.Errorf("without an address: %s", got)
		}
	}
}
