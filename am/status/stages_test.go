package status

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// TestStages plays starts and losses against core and looks at the order of
// what is noted of a task.
func TestStages(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 1, MemoryMb: 256, Vcores: 1}
	start := time.UnixMilli(1_000_000)
	attached := func(c string) core.Event { return core.AgentConnected{Container: c, Host: "h", PID: 1, Attempt: -1} }
	up := func(request, c string, attempt int) []core.Event {
		return []core.Event{
			core.Allocated{Request: request, Container: c, Node: "n"}, attached(c),
			core.AgentPrepared{Container: c, Port: 1}, core.StorePrepared{}, core.TaskStarted{Container: c, Attempt: attempt, PID: 1},
		}
	}
	for _, x := range []struct {
		name   string
		spares int
		after  []core.Event // its first start
		want   string
	}{
		{"the first start", 0, nil, "asked allocated agent attached prepared ordered started"},
		{"in place", 0, []core.Event{
			core.TaskExited{Container: "c1", Attempt: 0, Signal: 9}, core.StorePrepared{}, core.TaskStarted{Container: "c1", Attempt: 1, PID: 2},
		}, "lost ordered started"},
		{"its end is known before there is a container", 0, append([]core.Event{
			core.AgentDisconnected{Container: "c1"}, core.ContainerEnded{Container: "c1"},
		}, up("worker-0/2", "c2", 1)...), "lost asked ended allocated agent attached prepared ordered started"},
		{"there is a container before its end is known", 0, []core.Event{
			core.AgentDisconnected{Container: "c1"}, core.Allocated{Request: "worker-0/2", Container: "c2", Node: "n"},
			core.ContainerEnded{Container: "c1"}, attached("c2"),
			core.AgentPrepared{Container: "c2", Port: 1}, core.StorePrepared{}, core.TaskStarted{Container: "c2", Attempt: 1, PID: 1},
		}, "lost asked allocated ended agent attached prepared ordered started"},
		{"a spare", 1, []core.Event{
			core.Allocated{Request: "spare/2", Container: "s1", Node: "n"}, attached("s1"),
			core.AgentDisconnected{Container: "c1"}, core.ContainerEnded{Container: "c1"},
			core.AgentPrepared{Container: "s1", Port: 1}, core.StorePrepared{}, core.TaskStarted{Container: "s1", Attempt: 1, PID: 1},
		}, "lost ended prepared ordered started"},
	} {
		t.Run(x.name, func(t *testing.T) {
			job := core.New([]core.Task{{Name: "worker-0", Role: role}}, 3, x.spares, core.Limits{})
			s := NewStages()
			now := start
			for _, e := range append(append([]core.Event{core.Begin{}}, up("worker-0/1", "c1", 0)...), x.after...) {
				now = now.Add(10 * time.Millisecond)
				if a, ok := e.(core.AgentConnected); ok {
					s.AgentStarted(a.Container, now.Add(-5*time.Millisecond))
				}
				s.Record(now, e, job.Step(now, e), job)
			}
			var names []string
			for _, p := range s.ByTask()["worker-0"] {
				names = append(names, p.Name)
			}
			if got := strings.Join(names, " "); got != x.want {
				t.Errorf("it passed %s\nwant      %s", got, x.want)
			}
			if len(s.agents)+len(s.disconnected)+len(s.unassigned) > 0 {
				t.Errorf("left over: %v, %v, %v", s.agents, s.disconnected, s.unassigned)
			}
		})
	}
}
