package am

import (
	"time"

	"holdfast/am/agents"
	"holdfast/am/core"
	"holdfast/proto"
)

// causes maps what a driver says to what core decides on.
var causes = map[EndCause]core.Cause{
	EndExited:       core.CauseOwnFault,
	EndReleased:     core.CauseReleased,
	EndPreempted:    core.CausePreempted,
	EndNodeLost:     core.CauseNodeLost,
	EndDisksFailed:  core.CauseDisksFailed,
	EndOutOfMemory:  core.CauseOutOfMemory,
	EndVirtualLimit: core.CauseVirtualLimit,
	EndKilled:       core.CauseKilled,
	EndUnknown:      core.CauseUnknown,
}

// fromDriver translates a driver's event.
func (m *Master) fromDriver(e DriverEvent) core.Event {
	switch e := e.(type) {
	case Allocated:
		return core.Allocated{Request: e.Request, Container: e.Container, Node: e.Node}
	case Found:
		m.preparation.launched[e.Container] = true
		return core.ContainerFound{Container: e.Container, Node: e.Node}
	case Localizing:
		return core.Localizing{Container: e.Container, What: e.What}
	case LaunchFailed:
		return core.LaunchFailed{Container: e.Container, Why: e.Err.Error()}
	case Ended:
		return core.ContainerEnded{Container: e.Container, Cause: causes[e.Cause], Exit: e.Exit, Diagnostics: e.Diagnostics}
	case Preempting:
		return core.PreemptionWarned{Containers: e.Containers, Strict: e.Strict, Within: e.Within}
	case PreemptionOver:
		return core.PreemptionCanceled{Containers: e.Containers, Why: e.Why}
	case NodeLeaving:
		return core.NodeDecommissioning{Node: e.Node, Within: e.Within, HostsAM: e.Node == m.cfg.Listener.Host()}
	case NodeStays:
		return core.NodeRecommissioned{Node: e.Node}
	case Waiting:
		return core.Waiting{Why: e.Why}
	case Broken:
		return core.Broken{Why: e.Err.Error()}
	default:
		return nil
	}
}

// fromAgent translates an agent's message into core's event; nil if core need not know.
func (m *Master) fromAgent(r agents.Received) core.Event {
	if r.Message == nil {
		return core.AgentDisconnected{Container: r.Container, Orderly: r.Orderly, Silent: time.Since(r.LastHeard)}
	}
	switch e := r.Message.Message.(type) {
	case *proto.FromAgent_Hello:
		return m.connected(r.Container, e.Hello)
	case *proto.FromAgent_Prepared:
		m.cfg.Log.WithField("container", r.Container).Infof("prepared: mounting %s, steering %s, port %d", e.Prepared.Mounting, e.Prepared.Steering, e.Prepared.Port)
		return core.AgentPrepared{Container: r.Container, Port: int(e.Prepared.Port), Notes: e.Prepared.Notes}
	case *proto.FromAgent_AgentFailure:
		f := e.AgentFailure
		return core.AgentFailed{Container: r.Container, Detail: f.Detail, NodeSpecific: f.NodeSpecific, Permanent: f.Permanent, DirectoryRemoved: f.DirectoryRemoved}
	case *proto.FromAgent_Started:
		return core.TaskStarted{Container: r.Container, Attempt: int(e.Started.Attempt), PID: int(e.Started.Pid)}
	case *proto.FromAgent_Exited:
		return exited(r.Container, e.Exited)
	case *proto.FromAgent_Committed:
		m.status.Saving()
		m.sealer.Committed(e.Committed, m.job.Generation())
	case *proto.FromAgent_Prewarmed:
		return core.Prewarmed{Container: r.Container}
	case *proto.FromAgent_ImportProfile:
		if m.prewarmer.SetProfile(m.job, r.Container, e.ImportProfile) {
			m.write(nil, false)
		}
		m.prewarmSpares()
	}
	return nil
}

func (m *Master) connected(container string, h *proto.Hello) core.AgentConnected {
	m.stages.AgentStarted(container, time.UnixMilli(h.StartedUnixMs))
	e := core.AgentConnected{
		Container: container, Host: h.Host, PID: int(h.Pid),
		Task: h.Task, Port: int(h.Port), PeerPort: int(h.PeerPort),
		Attempt: int(h.Attempt), Generation: int(h.Generation), TaskPID: int(h.TaskPid),
	}
	if h.Exited != nil {
		x := exited(container, h.Exited)
		e.Exited = &x
	}
	return e
}

func exited(container string, x *proto.Exited) core.TaskExited {
	return core.TaskExited{
		Container: container, Attempt: int(x.Attempt), Code: int(x.Code), Signal: int(x.Signal),
		OutOfMemory: x.OutOfMemory, CommandMissing: x.CommandMissing, PeerLost: x.PeerLost, Stopped: x.Stopped,
		Detail: x.Detail, Advice: x.Advice, Tail: x.Tail,
		AtMS: x.AtUnixMs, Error: x.Error, Step: x.Step, Stack: x.Stack,
	}
}
