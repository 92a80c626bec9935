package yarn

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/hadoop/conf"
	hadoop "holdfast/internal/hadoop/yarn"
)

// applicationReport is what the RM tells a client about the application after it has
// refused the master.
type applicationReport struct {
	refusal error
	report  hadoop.Report
	err     error
}

// queryApplication finds out why the RM does not accept this attempt as the application's
// master any longer: either another attempt replaces it, and the job must be left to that
// one, or the application is unknown, and no attempt ever will.
func (d *Driver) queryApplication(refusal error) {
	if d.client == nil {
		d.supersede(fmt.Errorf("the ResourceManager has given up this application master: %w", refusal))
		return
	}
	if d.s.querying {
		return
	}
	d.s.querying = true
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		r := applicationReport{refusal: refusal}
		var id hadoop.ApplicationID
		if id, r.err = hadoop.ParseApplicationID(d.cfg.Job); r.err == nil {
			r.report, r.err = d.client.Report(ctx, id)
		}
		return r
	})
}

func (d *Driver) afterApplicationReport(r applicationReport) {
	d.s.querying = false
	switch {
	case hadoop.IsUnknownApplication(r.err):
		d.fail(fmt.Errorf("the ResourceManager does not know the application any longer: it was restarted without the state of before (yarn.resourcemanager.recovery.enabled): %w", r.refusal))
	case r.err != nil: // the next heartbeat is refused, too
		d.log.WithError(r.err).Warn("cannot find out why the ResourceManager refuses the application master")
	default: // the next attempt runs, or will once this one has left
		d.supersede(fmt.Errorf("the ResourceManager has given up this application master: %w", r.refusal))
	}
}

// Once the RM has not answered for silentFor, a check for another master is made every
// successorCheckInterval, which takes successorCheckTimeout at most.
const (
	silentFor              = 3 * time.Second
	successorCheckInterval = time.Second
	successorCheckTimeout  = 2 * time.Second
)

// expiryTime returns how long the RM waits for a heartbeat of a master, or of its node,
// before it starts another master.
func expiryTime(c *conf.Conf) (time.Duration, error) {
	least := time.Duration(1<<63 - 1)
	for _, of := range []string{"am", "nm"} {
		t, err := c.Duration("yarn."+of+".liveness-monitor.expiry-interval-ms", time.Millisecond, 10*time.Minute)
		if err != nil {
			return 0, err
		}
		least = min(least, t)
	}
	return least, nil
}

// successorCheck is the result of a check for the attempt that announced itself last.
type successorCheck struct {
	asked   time.Time
	attempt int
	err     error
}

// checkSuccessor begins a check whether an RM that cannot be reached from here has started
// another master, as it does after Driver.expiry. That master waits for the leases of
// agents that do not connect to it, and they connect, or their leases expire, only once
// this one has left. So this one also leaves where it cannot find out.
func (d *Driver) checkSuccessor(now time.Time) {
	s := d.s
	if d.cfg.LatestAttempt == nil || s.checkingSuccessor || now.Sub(s.answeredAt) < silentFor || now.Sub(s.successorCheckedAt) < successorCheckInterval {
		return
	}
	s.checkingSuccessor, s.successorCheckedAt = true, now
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, successorCheckTimeout)
		defer cancel()
		attempt, err := d.cfg.LatestAttempt(ctx)
		return successorCheck{now, attempt, err}
	})
}

func (d *Driver) afterSuccessorCheck(r successorCheck) {
	d.s.checkingSuccessor = false
	switch unsure := r.asked.Sub(d.s.soleMasterAt); {
	case r.err != nil && unsure > d.expiry*4/5: // agents' leases, which this one renews, last for a while
		d.supersede(fmt.Errorf("neither the ResourceManager nor the job's directory has confirmed for %s that there is no other application master: %w", unsure.Round(time.Second), r.err))
	case r.err != nil:
		d.log.WithError(r.err).Info("the ResourceManager does not answer, and it is not known whether there is another application master")
	case r.attempt > int(d.attempt):
		d.supersede(fmt.Errorf("application master attempt %d has announced itself, while the ResourceManager did not answer this one", r.attempt))
	default:
		d.s.soleMasterAt = r.asked
	}
}
