package core

import (
	"time"

	"holdfast/proto"
)

// Limits are the times and counts of the policy. The zero value of a field
// stands for the default.
type Limits struct {
	// Attach is how long a launched agent may take to connect, once its container has
	// its files.
	Attach time.Duration
	// Localize is for how long an agent is waited for whose container's node is known
	// to be bringing its files; Attach begins after that.
	Localize time.Duration
	// Prepare is how long an agent may take to make a task ready.
	Prepare time.Duration
	// Start is how long the tasks may take until they can start together for the
	// first time, counted anew when containers have got their files, and QuorumWait how long all are waited for where a role may start with fewer. A
	// zero Start is no limit.
	Start, QuorumWait time.Duration
	// Lease is how long an agent without a connection lets its task run, counted
	// anew for as long as it sees that there is no master (proto/lease.go).
	Lease time.Duration
	// LivenessFile: agents renew their leases for want of a master, so none has expired
	// unless LivenessConfirmed says so.
	LivenessFile bool
	// LeaseExpiry is how long an agent is waited for after it was heard last, before its
	// task is started elsewhere, unless its container is known to have ended. It
	// is longer than Lease, which the agent counts from before that, by what it
	// needs to end its task and by more than clocks can drift apart.
	LeaseExpiry time.Duration
	// Save is how long a task whose move is due is left running for the sake of
	// the next checkpoint, and then what it gets between SIGTERM and SIGKILL, if
	// that is more than Stop; less where less time is left. SpareHoldoff is how long no spares are asked for
	// after the scheduler wanted containers back.
	Save, SpareHoldoff time.Duration
	// Orphan is how long a task may stay in a container that YARN has lost with
	// its NodeManager, while its agent is connected.
	Orphan time.Duration
	// Stall is for how long no step may be made, at least, until something is done
	// about it; less than zero: nothing is. StallWarning is the same until it is told.
	Stall, StallWarning time.Duration
	// Stop is the time that tasks get between SIGTERM and SIGKILL when they are
	// stopped, at the job's end, to start again together or because a move cannot
	// wait; less than zero: none. Leave is what agents get to save logs and unmount.
	Stop, Leave time.Duration
	// Prewarm is how long a stand-in may get ready for its task, which runs on
	// meanwhile, after its agent has come, unless that says that it has. Zero:
	// there is nothing to get ready but the agent.
	Prewarm time.Duration
	// Window is how long a failure or loss counts.
	Window time.Duration
	// Losses is how many containers one task may lose within Window without
	// being at fault itself.
	Losses int
	// PeerWindow is how near to the loss of another task an exit must be to be
	// put down to it.
	PeerWindow time.Duration
	// Settle is how long a task that blames a peer waits for another's loss to be
	// known, and in any case if it did so before, less than Calm ago.
	Settle time.Duration
	// BackoffMax bounds the delay before an attempt; it doubles from one second
	// with each failure that comes sooner than Calm after the one before.
	BackoffMax, Calm time.Duration
}

// DefaultStall is Limits.Stall where nothing else is said.
const DefaultStall = 10 * time.Minute

// DefaultStop is Limits.Stop where nothing else is said.
const DefaultStop = 5 * time.Second

// DefaultLease is Limits.Lease where nothing else is said.
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
	d(&l.QuorumWait, 30*time.Second)
	d(&l.Save, 30*time.Second)
	d(&l.SpareHoldoff, time.Minute)
	d(&l.Orphan, time.Minute)
	d(&l.Stop, DefaultStop)
	l.Stop = max(l.Stop, 0)
	d(&l.Stall, DefaultStall)
	d(&l.StallWarning, 2*time.Minute)
	d(&l.Lease, DefaultLease)
	d(&l.LeaseExpiry, proto.LeaseExpiry(l.Lease))
	d(&l.Leave, 10*time.Second)
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
