package proto

import (
	"fmt"
	"slices"
	"strings"
)

// TasksShown bounds how many tasks are shown to people one by one. JSON has all of them.
const TasksShown = 200

// StateWord returns the state of a job or a task for people.
func StateWord(s fmt.Stringer) string {
	text := strings.ToLower(s.String())
	if i := strings.Index(text, "state_"); i >= 0 {
		text = text[i+len("state_"):]
	}
	return text
}

// Notable returns the tasks that are shown one by one: all of a job with at most TasksShown,
// and otherwise so many of them, the most urgent ones first.
func (s *JobStatus) Notable() []*TaskStatus {
	if len(s.GetTasks()) <= TasksShown {
		return s.GetTasks()
	}
	list := slices.Clone(s.Tasks)
	slices.SortStableFunc(list, func(a, b *TaskStatus) int { return Urgency(a) - Urgency(b) })
	return list[:TasksShown]
}

// IsOpen reports whether the task of an incident is not back yet, and is to come back.
func (s *JobStatus) IsOpen(i *Incident) bool { return i.RecoveredUnixMs == 0 && !s.State.Done() }

// OpenIncidents returns how many incidents are open.
func (s *JobStatus) OpenIncidents() int {
	n := 0
	for _, i := range s.GetIncidents() {
		if s.IsOpen(i) {
			n++
		}
	}
	return n
}

// Urgency orders tasks for people: 0 for those that failed, 1 for those that do not run yet
// or again, and 2 for the others.
func Urgency(t *TaskStatus) int {
	switch t.State {
	case TaskState_TASK_STATE_FAILED:
		return 0
	case TaskState_TASK_STATE_RUNNING, TaskState_TASK_STATE_SUCCEEDED, TaskState_TASK_STATE_STOPPED:
		return 2
	}
	return 1
}

// TaskCounts counts a job's tasks: "ps: 2 running; worker: 9 running, 1 restarting".
func (s *JobStatus) TaskCounts() string {
	var roles []string
	count := map[string]map[TaskState]int{}
	for _, t := range s.GetTasks() {
		if count[t.Role] == nil {
			roles, count[t.Role] = append(roles, t.Role), map[TaskState]int{}
		}
		count[t.Role][t.State]++
	}
	for i, r := range roles {
		var parts []string
		for state := range TaskState(len(TaskState_name)) {
			if n := count[r][state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, StateWord(state)))
			}
		}
		roles[i] = r + ": " + strings.Join(parts, ", ")
	}
	return strings.Join(roles, "; ")
}
