package runtime

import (
	"slices"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// member makes an attempt's view of the job. A port that is not known is 0.
func member(spec *proto.JobSpec, a framework.Attempt) framework.Member {
	f := frameworks.Of(spec)
	m := framework.Member{Attempt: a, Observer: f.Observes(a.Task.Role), Locals: Processes(spec, a.Task.Role)}
	m.Launched = launchedProcesses(spec, a.Task.Role)
	if len(a.MorePorts) > 0 && f.TensorBoard != nil && f.TensorBoard(spec, a.Task) {
		m.TensorBoardPort = a.MorePorts[0]
	}
	rank := 0
	for i, t := range Tasks(spec) {
		if f.Observes(t.Role) || slices.Contains(a.Absent, int32(i)) {
			continue
		}
		if t == a.Task {
			m.Node, m.Rank = len(m.Members), rank+a.Local
		}
		virtual := VirtualAddress(i)
		if a.Virtual != nil {
			virtual = a.Virtual[i].String()
		}
		p := framework.Peer{Task: t, Host: t.Name, Virtual: virtual, Port: a.Ports[t.Name], Processes: Processes(spec, t.Role), Launched: launchedProcesses(spec, t.Role)}
		m.Members = append(m.Members, p)
		rank += p.Processes
	}
	return m
}
