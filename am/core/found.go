package core

// ContainerFound reports that YARN has come to know again of a container that it did not hand
// over when this application master registered: the ResourceManager was restarted as
// well, and the container's NodeManager has come to it only now.
type ContainerFound struct{ Container, Node string }

func (ContainerFound) event() {}

// found keeps such a container's task where it is. A container that no task has is
// given back.
func (j *Job) found(e ContainerFound) {
	t := j.Hosted(e.Container)
	if t == nil {
		j.do(Release{e.Container})
		return
	}
	t.Node = e.Node
	if t.orphan == nil || j.ending() || t.moving != CauseUnknown { // else it is on its way out of there
		return
	}
	t.orphan = nil
	j.orphans--
	if t.wanted {
		return
	}
	t.stay()
	j.record(t, KindNote, "YARN has found its container on %s again, and it stays there", t.Node)
}
