package yarn

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// PlacingTime is the time in which a ResourceManager places an application master if there is
// room: nodes send heartbeats every second
// (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms).
const PlacingTime = 2 * time.Second

const placing = "the ResourceManager has accepted the job and is placing its application master"

// Waiting describes what an application waits for whose AM does not run yet; empty if it
// does not wait. The CapacityScheduler writes that into the diagnostics
// (AMContainerDiagnostics in its FiCaSchedulerApp and RMAppAttemptImpl). age is how long
// ago the application was submitted: the scheduler writes that it waits for room as soon as
// it has the application, and offers it nodes at their next heartbeats, so before
// PlacingTime that means nothing.
func Waiting(r Report, age time.Duration) string {
	if r.State.Done() || r.State == StateRunning {
		return ""
	}
	d := r.Diagnostics
	switch {
	case strings.Contains(d, "User's AM resource limit exceeded"):
		return fmt.Sprintf("the user %s has as many application masters in the queue %q as it allows%s; the job starts when another of the user's ends", r.User, r.Queue, amLimit(d, "User AM Resource Limit of the queue"))
	case strings.Contains(d, "AM resource limit exceeded"):
		return fmt.Sprintf("the queue %q has as many application masters as it allows%s; the job starts when another job there ends, or in another queue (--queue)", r.Queue, amLimit(d, "Queue Resource Limit for AM"))
	case strings.Contains(d, "waiting for AM container to Register"):
		return "the application master is starting"
	case strings.Contains(d, "waiting for resources to be assigned for AM") && age < PlacingTime:
		return placing
	case strings.Contains(d, "waiting for resources to be assigned for AM"):
		return fmt.Sprintf("no node has room for the application master yet, or the queue %q is full", r.Queue)
	case r.State == StateAccepted && d != "":
		return words(stamp.ReplaceAllString(d, ""))
	case r.State == StateAccepted:
		return placing
	}
	return "the ResourceManager is taking the job"
}

// stamp is the time at which diagnostics begin.
var stamp = regexp.MustCompile(`^\[[^\]]*\]\s*`)

// amLimit finds what a limit is in diagnostics such as
// "Queue Resource Limit for AM = <memory:1024, vCores:1>;".
func amLimit(d, name string) string {
	_, rest, ok := strings.Cut(d, name+" = <memory:")
	if !ok {
		return ""
	}
	var mb int64
	if n, _ := fmt.Sscanf(rest, "%d", &mb); n != 1 {
		return ""
	}
	return " (" + Megabytes(mb) + " for all of them)"
}
