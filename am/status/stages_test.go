package status

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// TestStages plays starts and losses against core and looks at the order of
// what is noted of a task.
func TestStages(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 1, MemoryMb: 256, Vcores: 1}
	start := time.UnixMilli(1_000_000)
	attached := func(c string) event.Event { return event.AgentConnected{Container: c, Host: "h", PID: 1, Attempt: -1} }
	up := func(request, c string, attempt int) []event.Event {
		return []event.Event{
			event.Allocated{Request: request, Container: c, Node: "n"}, attached(c),
			event.AgentPrepared{Container: c, Port: 1}, event.StorePrepared{}, event.TaskStarted{Container: c, Attempt: attempt, PID: 1},
		}
	}
	for _, x := range []struct {
		name   string
		spares int
		after  []event.Event // its first start
		want   string
	}{
		{"the first start", 0, nil, "asked allocated agent attached prepared ordered started"},
		{"in place", 0, []event.Event{
			event.TaskExited{Container: "c1", Attempt: 0, Signal: 9}, event.StorePrepared{}, event.TaskStarted{Container: "c1", Attempt: 1, PID: 2},
		}, "lost ordered started"},
		{"its end is known before there is a container", 0, append([]event.Event{
			event.AgentDisconnected{Container: "c1"}, event.ContainerEnded{Container: "c1"},
		}, up("worker-0/2", "c2", 1)...), "lost asked ended allocated agent attached prepared ordered started"},
		{"there is a container before its end is known", 0, []event.Event{
			event.AgentDisconnected{Container: "c1"}, event.Allocated{Request: "worker-0/2", Container: "c2", Node: "n"},
			event.ContainerEnded{Container: "c1"}, attached("c2"),
			event.AgentPrepared{Container: "c2", Port: 1}, event.StorePrepared{}, event.TaskStarted{Container: "c2", Attempt: 1, PID: 1},
		}, "lost asked allocated ended agent attached prepared ordered started"},
		{"a spare", 1, []event.Event{
			event.Allocated{Request: "spare/2", Container: "s1", Node: "n"}, attached("s1"),
			event.AgentDisconnected{Container: "c1"}, event.ContainerEnded{Container: "c1"},
			event.AgentPrepared{Container: "s1", Port: 1}, event.StorePrepared{}, event.TaskStarted{Container: "s1", Attempt: 1, PID: 1},
		}, "lost ended prepared ordered started"},
	} {
		t.Run(x.name, func(t *testing.T) {
			job := core.New([]core.Task{{Name: "worker-0", Role: role}}, 3, x.spares, core.Limits{})
			s := NewStages()
			now := start
			for _, e := range append(append([]event.Event{event.Begin{}}, up("worker-0/1", "c1", 0)...), x.after...) {
				now = now.Add(10 * time.Millisecond)
				if a, ok := e.(event.AgentConnected); ok {
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
