package yarn

import (
	"context"
	"fmt"
	"time"

	"holdfast/internal/hadoop/conf"
	hadoop "holdfast/internal/hadoop/yarn"
)

// standing is what the RM knows of the application, asked as a client after it
// had refused the master.
type standing struct {
	refusal error
	report  hadoop.Report
	err     error
}

// askAfterUs finds out what it means that the RM does not take this attempt for
// the application's master: that another one has taken its place, so that the
// job must be left to it, or that nobody ever will.
func (d *Driver) askAfterUs(refusal error) {
	if d.client == nil {
		d.superseded(fmt.Errorf("the ResourceManager has given up this application master: %w", refusal))
		return
	}
	if d.s.asking {
		return
	}
	d.s.asking = true
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		r := standing{refusal: refusal}
		var id hadoop.ApplicationID
		if id, r.err = hadoop.ParseApplicationID(d.cfg.Job); r.err == nil {
			r.report, r.err = d.client.Report(ctx, id)
		}
		return r
	})
}

func (d *Driver) afterStanding(r standing) {
	d.s.asking = false
	switch {
	case hadoop.IsUnknownApplication(r.err):
		d.breakDown(fmt.Errorf("the ResourceManager does not know the application any longer: it was restarted without the state of before (yarn.resourcemanager.recovery.enabled): %w", r.refusal))
	case r.err != nil: // the next heartbeat is refused again
		d.log.WithError(r.err).Warn("cannot find out why the ResourceManager refuses the application master")
	default: // the next attempt is there, or will be once this one has left
		d.superseded(fmt.Errorf("the ResourceManager has given up this application master: %w", r.refusal))
	}
}

// While the RM has not answered for unheard, another master is looked for every
// heirEvery, and that takes heirLimit at most.
const (
	unheard   = 3 * time.Second
	heirEvery = time.Second
	heirLimit = 2 * time.Second
)

// expiryTime is how long the RM waits to hear of a master, or of its node, before
// it starts another.
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

// heir is the master that has announced itself last.
type heir struct {
	asked   time.Time
	attempt int
	err     error
}

// lookForHeir finds out whether an RM that cannot be reached from here has started
// another master, which it does after expiry. That one waits for the leases of
// agents that do not come to it, and they come, or their leases end, only once
// this one has left. So it leaves also where it cannot know of the other.
func (d *Driver) lookForHeir(now time.Time) {
	s := d.s
	if d.cfg.Announced == nil || s.heirs || now.Sub(s.heard) < unheard || now.Sub(s.heirAt) < heirEvery {
		return
	}
	s.heirs, s.heirAt = true, now
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, heirLimit)
		defer cancel()
		attempt, err := d.cfg.Announced(ctx)
		return heir{now, attempt, err}
	})
}

func (d *Driver) afterHeir(r heir) {
	d.s.heirs = false
	switch unsure := r.asked.Sub(d.s.sure); {
	case r.err != nil && unsure > d.expiry*4/5: // what agents hear of this one counts for a while
		d.superseded(fmt.Errorf("neither the ResourceManager nor the job's directory has told for %s that there is no other application master: %w", unsure.Round(time.Second), r.err))
	case r.err != nil:
		d.log.WithError(r.err).Info("the ResourceManager does not answer, nor is it known whether there is another application master")
	case r.attempt > int(d.attempt):
		d.superseded(fmt.Errorf("application master attempt %d has announced itself, while the ResourceManager did not answer this one", r.attempt))
	default:
		d.s.sure = r.asked
	}
}
