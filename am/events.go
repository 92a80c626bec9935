package am

import (
	"time"

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
		m.launched[e.Container] = true
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
		return core.NodeDecommissioning{Node: e.Node, Within: e.Within, HostsAM: e.Node == m.cfg.Place.host}
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

// fromAgent translates an agent's message; nil for what core need not know.
func (m *Master) fromAgent(a fromAgent) core.Event {
	if a.message == nil {
		return core.AgentDisconnected{Container: a.container, Orderly: a.orderly, Silent: time.Since(a.heard)}
	}
	switch e := a.message.Message.(type) {
	case *proto.FromAgent_Hello:
		h := e.Hello
		m.stages.agents[a.container] = time.UnixMilli(h.StartedUnixMs)
		attached := core.AgentConnected{
			Container: a.container, Host: h.Host, PID: int(h.Pid),
			Task: h.Task, Port: int(h.Port), PeerPort: int(h.PeerPort),
			Attempt: int(h.Attempt), Generation: int(h.Generation), TaskPID: int(h.TaskPid),
		}
		if h.Exited != nil {
			x := exited(a.container, h.Exited)
			attached.Exited = &x
		}
		return attached
	case *proto.FromAgent_Prepared:
		m.cfg.Log.WithField("container", a.container).Infof("prepared: mounting %s, steering %s, port %d", e.Prepared.Mounting, e.Prepared.Steering, e.Prepared.Port)
		return core.AgentPrepared{Container: a.container, Port: int(e.Prepared.Port), Notes: e.Prepared.Notes}
	case *proto.FromAgent_AgentFailure:
		return core.AgentFailed{Container: a.container, Detail: e.AgentFailure.Detail, NodeSpecific: e.AgentFailure.NodeSpecific, Permanent: e.AgentFailure.Permanent, DirectoryRemoved: e.AgentFailure.DirectoryRemoved}
	case *proto.FromAgent_Started:
		return core.TaskStarted{Container: a.container, Attempt: int(e.Started.Attempt), PID: int(e.Started.Pid)}
	case *proto.FromAgent_Exited:
		return exited(a.container, e.Exited)
	case *proto.FromAgent_Committed:
		m.board.saving(m.progress)
		m.sealer.committed(e.Committed, m.job.Generation())
	case *proto.FromAgent_Prewarmed:
		return core.Prewarmed{Container: a.container}
	case *proto.FromAgent_ImportProfile:
		if m.rehearse.hear(m.job, a.container, e.ImportProfile) {
			m.give(errand{})
		}
		m.rehearseSpares()
	}
	return nil
}

func exited(container string, x *proto.Exited) core.TaskExited {
	return core.TaskExited{
		Container: container, Attempt: int(x.Attempt), Code: int(x.Code), Signal: int(x.Signal),
		OutOfMemory: x.OutOfMemory, CommandMissing: x.CommandMissing, PeerLost: x.PeerLost, Stopped: x.Stopped,
		Detail: x.Detail, Advice: x.Advice, Tail: x.Tail,
		AtMS: x.AtUnixMs, Error: x.Error, Step: x.Step, Stack: x.Stack,
	}
}
