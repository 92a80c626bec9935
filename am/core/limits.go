package core

import (
	"time"

	"holdfast/proto"
)

// Limits are the times and counts of the policy. A field that is zero stands for the
// default.
type Limits struct {
	// Attach is how long a launched agent may take to connect, once its container has
	// its files. Localize is how long a node may take to fetch these.
	Attach, Localize time.Duration
	// Prepare is how long an agent may take to prepare a task.
	Prepare time.Duration
	// Start is how long the job may take to start for the first time; 0 is no limit.
	// The time in which nodes fetch files does not count.
	Start time.Duration
	// QuorumWait is how long a gang start waits for all tasks once there is a quorum,
	// where a role may start with fewer; less than zero: it does not.
	QuorumWait time.Duration
	// LossWait is the same for what was lost and has no container that is being prepared; 0:
	// QuorumWait.
	LossWait time.Duration
	// Unreachable is how long an agent must be without a connection before a group goes
	// on without its task that can.
	Unreachable time.Duration
	// Grow is how long a group works with other members than before until parked tasks
	// join; 0: until a checkpoint is found complete. Within GrowPause
	// that happens three times at most.
	Grow, GrowPause time.Duration
	// Lease is how long an agent without a connection lets its task run. It renews the
	// lease while it sees that there is no application master (proto/lease.go).
	Lease time.Duration
	// LivenessFile: agents renew their leases for want of an application master, so that
	// a lease counts as expired only once LivenessConfirmed allows it.
	LivenessFile bool
	// LeaseExpiry is how long after an agent's last message its lease counts as
	// expired: longer than Lease, by what an agent needs to end its task and by more
	// than clocks can drift apart.
	LeaseExpiry time.Duration
	// Save is how long a task that is to move is left running until the next
	// checkpoint, and then what it gets between SIGTERM and SIGKILL, if that is more
	// than Stop. Both are shorter where less time is left. Less than zero: no
	// checkpoint is waited for.
	Save time.Duration
	// SpareHoldoff is how long no spares are asked for after the scheduler wanted
	// containers back.
	SpareHoldoff time.Duration
	// Orphan is how long a task may stay in a container that YARN has lost with its
	// NodeManager, while its agent is connected.
	Orphan time.Duration
	// Stall is how long the job may make no step until something is done about it;
	// less than zero: nothing is. StallWarning is the same for the line in the event
	// log. Both may be longer (package pace).
	Stall, StallWarning time.Duration
	// StragglerTime is for how long a task must be slower than the others of its role,
	// StragglerFactor times at least, to be a straggler; less than zero: none is looked for.
	StragglerTime   time.Duration
	StragglerFactor float64
	// StragglerMoves is how often one task is moved to another node for that; 0: none is.
	StragglerMoves int
	// Stop is the time that tasks get between SIGTERM and SIGKILL when they are stopped
	// at the job's end, to start again together, or because a move cannot wait; less
	// than zero: none. Leave is what agents get to save logs and unmount.
	Stop, Leave time.Duration
	// Kill is how long an attempt may take to end after it was stopped and the time for that
	// is over, while its agent is connected: proto.EndLimit.
	Kill time.Duration
	// Answer is how long an agent may take, while it is connected, to answer what it was told:
	// to listen on another port, to start an attempt, to let one end that lingers, or to end
	// itself once its task is done.
	Answer time.Duration
	// Journaled: what agents are told waits for the journal, so that no time in which they are
	// to do it begins before Sent says that they were told.
	Journaled bool
	// Abandon is what takes the place of Stop, if it is less, for ranks that save together
	// when one of them was lost.
	Abandon time.Duration
	// Prewarm is how long a stand-in may prewarm after its agent has connected, while
	// its task runs on; 0: there is nothing to prewarm.
	Prewarm time.Duration
	// Window is how long a failure or loss counts.
	Window time.Duration
	// Losses is how many containers one task may lose within Window without being at
	// fault itself.
	Losses int
	// PeerWindow is how near to the loss of another task an exit must be to be put down
	// to it.
	PeerWindow time.Duration
	// Settle is how long a task that blames a peer waits for another's loss to be
	// reported. It also waits if it was lost less than Calm ago.
	Settle time.Duration
	// BackoffMax bounds the delay before an attempt. The delay doubles from one second
	// with each failure that comes sooner than Calm after the one before.
	BackoffMax, Calm time.Duration
}

// DefaultStall is Limits.Stall by default.
const DefaultStall = 10 * time.Minute

// DefaultStragglerTime and DefaultStragglerFactor are Limits.StragglerTime and
// StragglerFactor by default.
const (
	DefaultStragglerTime   = 2 * time.Minute
	DefaultStragglerFactor = 2
)

// DefaultStop is Limits.Stop by default.
const DefaultStop = 5 * time.Second

// DefaultElasticWait is Limits.QuorumWait by default.
const DefaultElasticWait = 30 * time.Second

// DefaultLease is Limits.Lease by default.
const DefaultLease = 10 * time.Second

func (l Limits) withDefaults() Limits {
	d := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	d(&l.Attach, time.Minute)
	d(&l.Localize, 30*time.Minute)
	d(&l.Prepare, 10*time.Minute)
	d(&l.QuorumWait, DefaultElasticWait)
	l.QuorumWait = max(l.QuorumWait, 0)
	d(&l.LossWait, l.QuorumWait)
	l.LossWait = max(l.LossWait, 0)
	d(&l.Unreachable, 2*time.Second)
	d(&l.GrowPause, 5*time.Minute)
	d(&l.Save, 30*time.Second)
	l.Save = max(l.Save, 0)
	d(&l.SpareHoldoff, time.Minute)
	d(&l.Orphan, time.Minute)
	d(&l.Stop, DefaultStop)
	l.Stop = max(l.Stop, 0)
	d(&l.Stall, DefaultStall)
	d(&l.StallWarning, 2*time.Minute)
	d(&l.StragglerTime, DefaultStragglerTime)
	if l.StragglerFactor == 0 {
		l.StragglerFactor = DefaultStragglerFactor
	}
	d(&l.Lease, DefaultLease)
	d(&l.LeaseExpiry, proto.LeaseExpiry(l.Lease))
	d(&l.Leave, 10*time.Second)
	d(&l.Kill, proto.EndLimit)
	d(&l.Answer, time.Minute)
	d(&l.Abandon, 500*time.Millisecond)
	d(&l.Window, time.Hour)
	d(&l.PeerWindow, time.Minute)
	d(&l.Settle, time.Second)
	d(&l.BackoffMax, 30*time.Second)
	d(&l.Calm, 2*time.Minute)
	if l.Losses == 0 {
		l.Losses = 10
	}
	return l
}
