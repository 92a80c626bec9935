package proto

import "time"

// An agent may run its task while its lease lasts. The lease is renewed whenever the
// application master (AM) answers a heartbeat, and also while no AM can take the task for
// lost, which an agent without a connection sees from AddressFile: the AM updates the
// file's modification time for as long as it is alive.
//
// An AM gives a task to another container only after it has updated the file without a gap
// for longer than the lease of the lost agent. A gap is more than TouchLimit from the
// beginning of an update to the end of the next. An agent that has seen the file untouched
// for Untouched knows that no AM has fulfilled that until then, and renews its lease. A
// successor replaces the file before it begins to wait, from when its predecessor gives no
// task away any longer. So an agent that sees the successor's file counts its lease from
// when it saw that of the predecessor last, and renews it on while the file is untouched:
// the successor may take long to start.
//
// All times that are fractions or multiples of a lease are in this file.

// TouchInterval is the time between two updates of the file.
func TouchInterval(lease time.Duration) time.Duration { return lease / 5 }

// TouchLimit is how far apart an AM's updates may be.
func TouchLimit(lease time.Duration) time.Duration { return lease * 2 / 5 }

// Untouched is how long an agent must see the file untouched. It is longer than TouchLimit
// by more than clocks can drift apart in that time.
func Untouched(lease time.Duration) time.Duration { return lease * 9 / 20 }

// PollInterval is the time between two looks of an agent without a connection at the file.
func PollInterval(lease time.Duration) time.Duration { return lease / 20 }

// LeaseExpiry is when an AM may count a lease as expired, from when it last received the
// agent. It is longer than the lease, which the agent counts from before that, by the time
// that the agent needs to end its task and by more than clocks can drift apart.
func LeaseExpiry(lease time.Duration) time.Duration { return lease + lease/10 + time.Second }

// StreamTimeout is how long either side waits for a word of the other until it gives up
// the connection, so that the agent has half its lease left to make another.
func StreamTimeout(lease time.Duration) time.Duration { return lease / 2 }

// KillLimit is how long an agent goes on killing what does not end of an attempt, and again what
// that has left behind once its own processes have ended.
const KillLimit = 10 * time.Second

// EndLimit is how long after SIGKILL an attempt may take to end, longer than all tries to kill
// it: what a process waits for in the kernel may keep it from ending for ever. Then the AM gives
// its container up, and an agent that ends does not wait for it any longer.
const EndLimit = 3 * KillLimit

const (
	minHeartbeatInterval = time.Second
	// heartbeatSpacing bounds the rate of heartbeats that one AM receives: it is the mean
	// time between those of two agents.
	heartbeatSpacing = 400 * time.Microsecond
	// heartbeatsPerLease is how many heartbeats an agent sends within its lease at least,
	// and so two within StreamTimeout.
	heartbeatsPerLease = 5
)

// HeartbeatInterval is the time between two heartbeats of an agent: a second, or longer in
// a job of many tasks, as far as the lease allows.
func HeartbeatInterval(lease time.Duration, tasks int) time.Duration {
	return max(minHeartbeatInterval, min(time.Duration(tasks)*heartbeatSpacing, lease/heartbeatsPerLease))
}

// MinLease is the shortest lease within which so many agents can send their heartbeats.
func MinLease(tasks int) time.Duration {
	return time.Duration(tasks) * heartbeatSpacing * heartbeatsPerLease
}
