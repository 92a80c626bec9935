package proto

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
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

// Group says with how many of the tasks that restart together the job works; "" where it
// works with all of them, or with none now.
func (s *JobStatus) Group() string {
	g := s.PresentGeneration()
	if g.GetTasks() == g.GetOf() {
		return ""
	}
	if g.Least == 0 { // an application master of an earlier version says so
		return fmt.Sprintf("works with %d of %d tasks", g.Tasks, g.Of)
	}
	return fmt.Sprintf("works with %d of %d tasks (at least %d)", g.Tasks, g.Of, g.Least)
}

// Absence is of tasks without which the others work since the same second, for one cause.
type Absence struct {
	Tasks       []string
	SinceUnixMs int64  // 0 if it is not known
	Cause       string // "" if there is none
}

// Names returns the tasks' names.
func (a Absence) Names() string { return Some(a.Tasks) }

// Absences returns the tasks without which the others work, those first that are absent for
// longest.
func (s *JobStatus) Absences() []Absence {
	var list []Absence
	for _, t := range s.GetTasks() {
		if t.State != TaskState_TASK_STATE_PARKED {
			continue
		}
		same := func(a Absence) bool {
			return a.SinceUnixMs/1000 == t.ParkedSinceUnixMs/1000 && a.Cause == t.ParkedCause
		}
		i := slices.IndexFunc(list, same)
		if i < 0 {
			i, list = len(list), append(list, Absence{SinceUnixMs: t.ParkedSinceUnixMs, Cause: t.ParkedCause})
		}
		list[i].Tasks = append(list[i].Tasks, t.Task)
	}
	slices.SortStableFunc(list, func(a, b Absence) int { return cmp.Compare(a.SinceUnixMs, b.SinceUnixMs) })
	return list
}

// Without says which tasks the others work without, since when and why, with the times of
// day as clock writes them; "" where there are none.
func (s *JobStatus) Without(clock func(unixMs int64) string) string {
	var parts []string
	for _, a := range s.Absences() {
		text := a.Names() + " parked"
		if a.SinceUnixMs != 0 {
			text += " since " + clock(a.SinceUnixMs)
		}
		if a.Cause != "" {
			text += ", " + a.Cause
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// PresentGeneration returns the generation that works; nil if none does.
func (s *JobStatus) PresentGeneration() *Generation {
	if n := len(s.GetGenerations()); n > 0 && s.Generations[n-1].EndedUnixMs == 0 {
		return s.Generations[n-1]
	}
	return nil
}

// Some returns a list of names that is not too long to be read.
func Some(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// Remaining returns the time until the job has made all its steps at its present rate. It is 0
// where that is not known: the program does not say how many it makes, or not all tasks run.
func (s *JobStatus) Remaining() time.Duration {
	left := s.GetTotalSteps() - s.GetStep()
	if s.GetState() != JobState_JOB_STATE_RUNNING || left <= 0 || s.StepsPerSecond <= 0 {
		return 0
	}
	for _, t := range s.Tasks {
		switch t.State {
		case TaskState_TASK_STATE_RUNNING, TaskState_TASK_STATE_SUCCEEDED, TaskState_TASK_STATE_STOPPED, TaskState_TASK_STATE_PARKED:
		default:
			return 0
		}
	}
	const most = 100 * 365 * 24 * time.Hour
	return time.Duration(min(float64(left)/s.StepsPerSecond*float64(time.Second), float64(most)))
}

// Percent returns how much of the steps that the program says it makes it has made, in whole
// percent; 0 if it does not say.
func (s *JobStatus) Percent() int64 {
	if s.GetTotalSteps() <= 0 {
		return 0
	}
	return min(100, s.Step*100/s.TotalSteps)
}

// Urgency orders tasks for people: 0 for those that failed, 1 for those that do not run yet
// or again, or are stragglers, and 2 for the others.
func Urgency(t *TaskStatus) int {
	switch {
	case t.State == TaskState_TASK_STATE_FAILED:
		return 0
	case t.Straggler != nil:
		return 1
	}
	switch t.State {
	case TaskState_TASK_STATE_RUNNING, TaskState_TASK_STATE_SUCCEEDED, TaskState_TASK_STATE_STOPPED:
		return 2
	}
	return 1
}

// RoleCount counts the tasks of a role.
type RoleCount struct {
	Role string
	All  int
	In   []int // by state
}

// StateCount counts the tasks of a role in a state.
type StateCount struct {
	State TaskState
	N     int
}

// Word returns the state for people.
func (c StateCount) Word() string { return StateWord(c.State) }

// States returns the states that tasks of the role are in, in the order of the states.
func (c *RoleCount) States() []StateCount {
	var list []StateCount
	for state, n := range c.In {
		if n > 0 {
			list = append(list, StateCount{TaskState(state), n})
		}
	}
	return list
}

// Roles counts a job's tasks by role, in the order of the job's tasks.
func (s *JobStatus) Roles() []*RoleCount {
	var list []*RoleCount
	of := map[string]*RoleCount{}
	for _, t := range s.GetTasks() {
		c := of[t.Role]
		if c == nil {
			c = &RoleCount{Role: t.Role, In: make([]int, len(TaskState_name))}
			of[t.Role], list = c, append(list, c)
		}
		c.All++
		if int(t.State) < len(c.In) { // else it is of a later version
			c.In[t.State]++
		}
	}
	return list
}

// TaskCounts counts a job's tasks: "ps: 2 running; worker: 9 running, 1 restarting".
func (s *JobStatus) TaskCounts() string {
	var roles []string
	for _, c := range s.Roles() {
		var parts []string
		for _, in := range c.States() {
			parts = append(parts, fmt.Sprintf("%d %s", in.N, in.Word()))
		}
		roles = append(roles, c.Role+": "+strings.Join(parts, ", "))
	}
	return strings.Join(roles, "; ")
}
