package yarn

import (
	"context"
	"fmt"
	"time"

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
// heirEvery.
const (
	unheard   = 3 * time.Second
	heirEvery = time.Second
)

// heir is the master that has announced itself last.
type heir struct {
	attempt int
	err     error
}

// lookForHeir finds out whether an RM that cannot be reached from here has started
// another master: it does where it has not heard of this one for
// yarn.am.liveness-monitor.expiry-interval-ms. That one waits for the leases of
// agents that do not come to it, and they come only once this one has left.
func (d *Driver) lookForHeir(now time.Time) {
	s := d.s
	if d.cfg.Announced == nil || s.heirs || now.Sub(s.heard) < unheard || now.Sub(s.heirAt) < heirEvery {
		return
	}
	s.heirs, s.heirAt = true, now
	d.async(func() any {
		ctx, cancel := context.WithTimeout(d.ctx, 10*time.Second)
		defer cancel()
		attempt, err := d.cfg.Announced(ctx)
		return heir{attempt, err}
	})
}

func (d *Driver) afterHeir(r heir) {
	d.s.heirs = false
	switch {
	case r.err != nil:
		d.log.WithError(r.err).Info("the ResourceManager does not answer, nor is it known whether there is another application master")
	case r.attempt > int(d.attempt):
		d.superseded(fmt.Errorf("application master attempt %d has announced itself, while the ResourceManager did not answer this one", r.attempt))
	}
}
