package am

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/recovery"
	"holdfast/am/status"
	"holdfast/proto"
)

// endLimits bound what is done after the job's end, one thing after the other. Each has a time
// of its own: what does not answer takes none of that for telling the cluster of the end, without
// which the cluster starts another application master, or takes the job for failed.
type endLimits struct {
	seal        time.Duration // the last checkpoints
	directories time.Duration // what is left to do in checkpoint directories
	record      time.Duration // the final status and address, in the job's directory
	tell        time.Duration // the cluster
}

var defaultEndLimits = endLimits{seal: 30 * time.Second, directories: 30 * time.Second, record: 30 * time.Second, tell: time.Minute}

// lingerTime is what watching clients get to receive the final status.
const lingerTime = time.Second

// ErrLeft is returned by Run for a job that goes on without this master.
var ErrLeft = errors.New("the job is left to another application master")

// Run runs the job to its end and returns its final status. When ctx ends, the job is
// killed; but where another master can take over, the job is left running, as it is when
// the cluster has given this attempt up, and Run returns ErrLeft.
func (m *Master) Run(ctx context.Context, driver Driver) (*proto.JobStatus, error) {
	m.status.PassStage(status.StageRegistered)
	detached := context.WithoutCancel(ctx) // the end of ctx is an event, and does not stop the work
	working, stopWorking := context.WithCancel(detached)
	defer stopWorking()
	saving, stopSaving := context.WithCancel(detached)
	defer stopSaving()
	notifying, stopNotifying := context.WithCancel(detached)
	defer stopNotifying()
	var background, saver, sealer, notifier sync.WaitGroup
	background.Go(func() { _ = m.grpc.Serve(m.cfg.Listener) }) // ends by Stop
	background.Go(func() { Trim(working) })
	background.Go(func() { m.preparation.preparer.Heartbeat(working) })
	if m.journal != nil {
		background.Go(func() { m.journal.Run(working) })
		background.Go(func() { m.liveness.Run(working) })
	}
	saver.Go(func() { m.status.SaveLoop(saving, m.cfg.Dir, m.cfg.Log) })
	saver.Go(func() { m.status.SaveSamplesLoop(saving, m.cfg.Dir, m.cfg.Log) })
	sealer.Go(func() { m.sealer.Run(working, m.done) })
	if m.notifier != nil {
		notifier.Go(func() { m.notifier.Run(notifying) })
	}
	if m.cfg.Predecessor == nil { // else its tasks run, and are not about to start
		m.preparation.startEarly(working)
	}

	finish := m.loop(ctx, working, driver)

	close(m.done)
	if finish == nil {
		stopSaving()
		stopWorking()
		stopNotifying()
		notifier.Wait()
		m.grpc.Stop() // agents look for the next master
		return nil, ErrLeft
	}
	waitAtMost(m.endLimits.seal, sealer.Wait)
	stopWorking()
	sealer.Wait()
	m.preparation.running.Wait()
	m.finishDirectories(detached, finish.State == proto.JobState_JOB_STATE_SUCCEEDED)
	stopSaving()
	saver.Wait() // an older status must not replace the final one
	m.status.Finish(m.job)
	final, _ := m.status.Snapshot()
	m.notifyEnd(final)
	notified := time.Now().Add(notifyTime)
	m.recordEnd(detached)
	telling, cancel := context.WithTimeout(detached, m.endLimits.tell)
	defer cancel()
	err := driver.Finish(telling, *finish)
	waitAtMost(lingerTime, m.grpc.GracefulStop)
	if m.notifier != nil {
		m.notifier.Wait(time.Until(notified))
	}
	stopNotifying()
	notifier.Wait()
	m.grpc.Stop()
	background.Wait()
	if err != nil {
		return final, fmt.Errorf("telling the cluster that job %s ended: %w", m.cfg.ID, err)
	}
	return final, nil
}

func (m *Master) finishDirectories(ctx context.Context, succeeded bool) {
	ctx, cancel := context.WithTimeout(ctx, m.endLimits.directories)
	defer cancel()
	for _, n := range m.preparation.preparer.Finish(ctx, succeeded) {
		m.status.Note(n)
	}
}

// recordEnd writes the final status, and the end for agents that cannot be reached, into the
// job's directory.
func (m *Master) recordEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.endLimits.record)
	defer cancel()
	m.status.Save(ctx, m.cfg.Dir, m.cfg.Log)
	if m.liveness != nil {
		if err := recovery.AnnounceEnd(ctx, m.cfg.Dir, m.cfg.Attempt, m.cfg.Listener.Address()); err != nil {
			m.cfg.Log.WithError(err).Warn("agents that cannot be reached are not told that the job has ended")
		}
	}
}

// waitAtMost waits until f returns, or for a time.
func waitAtMost(limit time.Duration, f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// driverBurst is how many of the driver's events are taken for one of the agents', where
// there are many of both.
const driverBurst = 8

// loop feeds events to core and carries its actions out, until core decides Finish. It
// returns nil if the job is to be left to another master. What it starts in the background
// ends with working.
func (m *Master) loop(ctx, working context.Context, driver Driver) *action.Finish {
	x := newExecutor(working, m, driver)
	defer x.flushDue.Stop()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	events, burst := driver.Events().Chan(m.done), 0
	ended := ctx.Done()
	var superseded <-chan struct{}
	var windows <-chan recovery.LivenessWindow
	var sent <-chan time.Time
	if m.journal != nil {
		superseded, windows, sent = m.journal.Superseded(), m.liveness.Windows(), m.journal.Sent()
	}
	next := m.firstEvent(driver)
	for {
		if next != nil {
			if f := x.step(next); f != nil {
				return f
			}
		}
		next = nil
		if at, ok := m.job.Deadline(); ok {
			timer.Reset(time.Until(at))
		} else {
			timer.Reset(time.Hour)
		}
		// What many agents report must not delay the asks for containers that have ended.
		received, prepared := m.received, m.preparation.done
		if burst++; burst < driverBurst && len(events) > 0 {
			received, prepared = nil, nil
		} else {
			burst = 0
		}
		select {
		case e := <-events:
			if found, is := e.(event.ContainerFound); is {
				m.preparation.launched[found.Container] = true
			}
			next = e
		case err := <-driver.Superseded():
			m.cfg.Log.WithError(err).Warn("leaving the job")
			return nil
		case r := <-received:
			next = m.fromAgent(r)
		case next = <-prepared:
			if m.begins {
				m.begins = false
				m.sealer.LookAll()
			}
		case <-m.stepsDue:
			next = m.status.TakeSteps()
		case newest := <-m.sealer.Newest():
			if next = (event.CheckpointFound{FixedWorld: newest.FixedWorld}); newest.Saved {
				next = event.CheckpointSealed{FixedWorld: newest.FixedWorld}
			}
		case <-superseded:
			return nil
		case w := <-windows:
			next = event.LivenessConfirmed{Since: w.Since, Until: w.Until}
		case decided := <-sent:
			next = event.Sent{Until: decided}
		case next = <-m.ends:
		case r := <-m.requests:
			next, x.answer = r.event, r.answer
		case <-ended:
			ended = nil
			if state, _ := m.job.State(); state == proto.JobState_JOB_STATE_STOPPING {
				break // it ends already, and another master could do no better
			}
			if m.cfg.Attempt > 0 {
				m.cfg.Log.Warn("told to end; leaving the job")
				return nil
			}
			next = event.Kill{Why: "the application master was told to end"}
		case <-x.flushDue.C:
			x.flush()
		case <-timer.C:
			next = event.Tick{}
		}
	}
}

// firstEvent returns the event that core begins with.
func (m *Master) firstEvent(driver Driver) event.Event {
	if m.cfg.Predecessor == nil {
		return event.Begin{}
	}
	previous := driver.PreviousContainers()
	for c := range previous {
		m.preparation.launched[c] = true
	}
	return event.Recovered{Attempt: m.cfg.Attempt, Containers: previous}
}
