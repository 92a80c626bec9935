package am

import (
	"time"

	"holdfast/am/agents"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// fromAgent translates an agent's message into core's event; nil if core need not know.
func (m *Master) fromAgent(r agents.Received) event.Event {
	if r.Message == nil {
		return event.AgentDisconnected{Container: r.Container, Orderly: r.Orderly, Silent: time.Since(r.LastHeard)}
	}
	switch e := r.Message.Message.(type) {
	case *proto.FromAgent_Hello:
		m.agents.Introduced(r)
		return m.connected(r.Container, e.Hello)
	case *proto.FromAgent_Prepared:
		m.cfg.Log.WithField("container", r.Container).Infof("prepared: mounting %s, steering %s, port %d", e.Prepared.Mounting, e.Prepared.Steering, e.Prepared.Port)
		return event.AgentPrepared{Container: r.Container, Port: int(e.Prepared.Port), PeerPort: int(e.Prepared.PeerPort), Notes: e.Prepared.Notes}
	case *proto.FromAgent_AgentFailure:
		f := e.AgentFailure
		return event.AgentFailed{Container: r.Container, Detail: f.Detail, NodeSpecific: f.NodeSpecific, Permanent: f.Permanent, DirectoryRemoved: f.DirectoryRemoved}
	case *proto.FromAgent_Started:
		return event.TaskStarted{Container: r.Container, Attempt: int(e.Started.Attempt), PID: int(e.Started.Pid)}
	case *proto.FromAgent_Exited:
		m.status.Exited(r.Container, e.Exited)
		return exited(r.Container, e.Exited)
	case *proto.FromAgent_NeedsPeers:
		return event.PeersNeeded{Container: r.Container}
	case *proto.FromAgent_Lingers:
		return event.TaskLingers{Container: r.Container, Attempt: int(e.Lingers.Attempt)}
	case *proto.FromAgent_LetEnd:
		return event.LetEnd{Container: r.Container, Attempt: int(e.LetEnd.Attempt)}
	case *proto.FromAgent_Committed:
		m.status.Committed(e.Committed.Files)
		m.sealer.Committed(e.Committed, m.job.Generation())
	case *proto.FromAgent_Prewarmed:
		return event.Prewarmed{Container: r.Container}
	case *proto.FromAgent_ImportProfile:
		if m.prewarmer.SetProfile(m.job, r.Container, e.ImportProfile) {
			m.write(nil, time.Time{}, false)
		}
		m.prewarmSpares()
	}
	return nil
}

func (m *Master) connected(container string, h *proto.Hello) event.AgentConnected {
	m.stages.AgentStarted(container, time.UnixMilli(h.StartedUnixMs))
	e := event.AgentConnected{
		Container: container, Host: h.Host, PID: int(h.Pid),
		Task: h.Task, Port: int(h.Port), PeerPort: int(h.PeerPort),
		Attempt: int(h.Attempt), Generation: int(h.Generation), TaskPID: int(h.TaskPid), NeedsPeers: h.NeedsPeers,
	}
	if s := h.Stopping; s != nil {
		e.Stopping = &event.Stopping{Reason: event.StopReason(s.Reason), Cause: event.Cause(s.Cause), KillIn: time.Duration(s.KillInMs) * time.Millisecond}
	}
	if h.Exited != nil {
		x := exited(container, h.Exited)
		e.Exited = &x
	}
	return e
}

func exited(container string, x *proto.Exited) event.TaskExited {
	return event.TaskExited{
		Container: container, Attempt: int(x.Attempt), Code: int(x.Code), Signal: int(x.Signal),
		OutOfMemory: x.OutOfMemory, CommandMissing: x.CommandMissing, PeerLost: x.PeerLost, Stopped: x.Stopped,
		Detail: x.Detail, Advice: x.Advice, Tail: x.Tail,
		AtMS: x.AtUnixMs, Error: x.Error, Step: x.Step, Stack: x.Stack,
	}
}
