package am

import (
	"cmp"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/notify"
	"holdfast/proto"
)

// notifyTime bounds how long the master stays after the job's end for notifications that
// have not arrived.
const notifyTime = 5 * time.Second

// newNotifier returns what notifies the URL of the job's spec; nil: there is none.
func newNotifier(cfg Config, note func(text string)) *notify.Notifier {
	if cfg.Spec.NotifyUrl == "" {
		return nil
	}
	return notify.New(notify.Config{URL: cfg.Spec.NotifyUrl, Log: cfg.Log, Note: note})
}

// notifyOf has an entry of the event log posted, if that is one to be notified of. It is
// called by the event loop.
func (m *Master) notifyOf(e *proto.JobEvent) {
	event := ""
	switch e.Kind {
	case action.KindStalled:
		event = notify.Stalled
	case action.KindStraggler:
		event = notify.Straggler
	case action.KindRecovered, action.KindResumed:
		event = notify.Recovered
	}
	if m.notifier == nil || event == "" {
		return
	}
	state, _ := m.job.State()
	m.notify(&proto.Notification{Event: event, State: state, Task: e.Task, Text: e.Text, AtUnixMs: e.AtUnixMs})
}

// notifyEnd has the job's end posted.
func (m *Master) notifyEnd(final *proto.JobStatus) {
	if m.notifier == nil {
		return
	}
	event := notify.Ended
	if final.State == proto.JobState_JOB_STATE_FAILED {
		event = notify.Failed
	}
	m.notify(&proto.Notification{
		Event: event, State: final.State, Text: cmp.Or(final.Why, proto.StateWord(final.State)), AtUnixMs: final.EndedUnixMs,
	})
}

// notify has a notification posted, with what each has of the job.
func (m *Master) notify(n *proto.Notification) {
	n.Id, n.Name, n.User = m.cfg.ID, m.cfg.Spec.Name, m.cfg.Spec.User
	n.Step, n.CompleteStep = m.status.Steps()
	m.notifier.Add(n)
}
