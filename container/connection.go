package container

import (
	"context"
	"os"
	"time"

	"holdfast/container/master"
	"holdfast/container/proctree"
	"holdfast/proto"
	"holdfast/runtime"
)

// arrival is the result of looking for the AM.
type arrival struct {
	conn    *master.Conn
	address string
	err     error
}

// masterOptions returns what the agent connects to its AM with.
func (a *agent) masterOptions() master.Options {
	return master.Options{Container: a.cfg.Container, Keys: a.cfg.Keys, JobStore: a.dir.open, Log: a.cfg.Log}
}

// reach looks for the AM in the background.
func (a *agent) reach(ctx context.Context) {
	a.reaching = true
	tasks := 0
	if a.task != nil {
		tasks = runtime.Count(a.task.assign.Spec)
	}
	address := a.address
	a.wg.Go(func() {
		c, address, err := master.Reach(ctx, a.masterOptions(), address, tasks)
		a.arrivals <- arrival{c, address, err}
	})
}

// arrived introduces the agent on a new stream: what it hosts, and what the AM
// may have missed.
func (a *agent) arrived(r arrival) {
	a.conn, a.address = r.conn, r.address
	a.lease.Connected()
	h := &proto.Hello{
		Container: a.cfg.Container, Host: a.cfg.Host, Pid: int32(os.Getpid()), StartedUnixMs: began.UnixMilli(),
		Attempt: a.number, Generation: a.generation, Exited: a.last,
	}
	if a.task != nil {
		h.Task = a.task.assign.Task
		a.log.Infof("connected to the application master at %s again", a.address)
	}
	if a.ready {
		h.Port, h.PeerPort = a.task.prepared.Port, a.task.prepared.PeerPort
	}
	lingers := false
	if a.attempt != nil {
		h.TaskPid = int32(a.attempt.pid())
		h.NeedsPeers, lingers = a.attempt.linger.state()
		h.Stopping = a.attempt.reportStop()
	}
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Hello{Hello: h}})
	if a.ready && a.failure != nil {
		a.sendFailure()
	}
	a.commits.Requeue()
	a.sendCommits()
	if lingers {
		a.sendLingers()
	}
	a.told, a.prewarmed = 0, false
	a.heartbeat()
}

// dropArrival closes a stream that reach has opened too late.
func (a *agent) dropArrival() {
	if !a.reaching {
		return
	}
	if r := <-a.arrivals; r.conn != nil {
		r.conn.Abandon()
	}
}

// disconnect closes the stream.
func (a *agent) disconnect() {
	if a.conn != nil {
		a.conn.Abandon()
		a.conn = nil
		a.lease.Disconnected()
		a.execs.endAll()
	}
}

// send sends a message to the AM, if there is a stream. Nothing is kept for later
// but commits: Hello says what has become of the rest.
func (a *agent) send(m *proto.FromAgent) {
	if a.conn != nil {
		a.conn.Send(m)
	}
}

func (a *agent) sendCommits() {
	if a.conn == nil {
		return
	}
	for _, c := range a.commits.Take() {
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: c}})
	}
}

func (a *agent) sendFailure() {
	a.send(&proto.FromAgent{Message: &proto.FromAgent_AgentFailure{AgentFailure: a.failure}})
}

// heartbeat guards what the task has started since, sends a heartbeat to the AM, and closes a
// stream on which nothing is answered.
func (a *agent) heartbeat() {
	var processes []int
	if a.attempt != nil {
		processes = a.box.Processes()
		if err := a.box.Guard(processes); err != nil && !a.unguarded {
			a.unguarded = true // which is said once
			a.log.WithError(err).Error("if this agent is killed, the task lives on for a moment, in which what it saves may be lost")
		}
	}
	if a.conn == nil {
		return
	}
	if a.lease.Stale() {
		a.conn.Break()
		return
	}
	b := &proto.Heartbeat{Sequence: a.lease.Heartbeat(), AgentRssBytes: proctree.RSS(os.Getpid()) + proctree.Anonymous(a.box.Pid())}
	if a.attempt != nil {
		a.usage.report(b, time.Now(), processes)
		a.attempt.reportProgress(b, processes)
	}
	b.WarmStatus, b.WarmRssBytes = a.stage.Standby.State()
	b.AgentRssBytes += b.WarmRssBytes
	a.send(&proto.FromAgent{Message: &proto.FromAgent_Heartbeat{Heartbeat: b}})
	if !a.prewarmed && a.stage.Standby.Prewarmed() {
		a.prewarmed = true
		a.send(&proto.FromAgent{Message: &proto.FromAgent_Prewarmed{Prewarmed: &proto.Prewarmed{}}})
	}
	if i, news := a.stage.ImportProfile(); news != a.told {
		a.told = news
		if i != nil {
			a.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: i}})
		}
	}
}
