package core

import "time"

// Localizing says that a container's node still brings the files of what was launched
// there, and What it does, after the node's name. It comes again every few seconds.
type Localizing struct{ Container, What string }

func (Localizing) event() {}

// localizing is since when a task's container, or a spare's, is known to be without its
// files.
type localizing struct {
	container string
	since     time.Time
}

// bringing has the time in which an agent must come, and that in which the job must
// start, begin when the container has its files, unless these take longer than
// Limits.Localize: then it is given up, and counts as a loss.
func (j *Job) bringing(e Localizing) {
	if s := j.spareByContainer(e.Container); s != nil {
		if s.agentPID == 0 {
			j.awaitFiles(&s.files, &s.deadline, e.Container)
		}
		return
	}
	t := j.Hosted(e.Container)
	if t == nil || t.AgentPID != 0 || t.unreachable() || j.ending() {
		return
	}
	j.brought = j.now
	if j.awaitFiles(&t.files, &t.deadline, e.Container) {
		j.record(t, KindNote, "%s %s", t.Node, e.What)
	}
}

// awaitFiles moves a deadline, and reports whether this is the first time that it does
// for a container.
func (j *Job) awaitFiles(l *localizing, deadline *time.Time, container string) (first bool) {
	if l.container != container {
		*l, first = localizing{container, j.now}, true
	}
	if next := j.now.Add(j.limits.Attach); next.Before(l.since.Add(j.limits.Localize)) && !deadline.IsZero() {
		*deadline = next
	}
	return first
}
