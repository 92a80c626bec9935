package core

// apart names the containers with which one for a task must not share a node: those of the
// role's other tasks, where the role is spread.
func (j *Job) apart(t *task) []string {
	if !t.role.Spread {
		return nil
	}
	var list []string
	for _, o := range j.tasks {
		if o != t && o.role == t.role && o.loc.container != "" {
			list = append(list, o.loc.container)
		}
	}
	for _, s := range j.spares {
		if s.task != nil && s.task != t && s.task.role == t.role && s.container != "" {
			list = append(list, s.container)
		}
	}
	return list
}

// occupied reports whether a node has another task of a role that is spread.
func (j *Job) occupied(t *task, node string) bool {
	return t.role.Spread && j.any(func(o *task) bool {
		return o != t && o.role == t.role && o.loc.container != "" && o.loc.node == node
	})
}
