package web

import (
	"net/http"
	"slices"
	"time"

	"holdfast/proto"
)

// taskView is what the page of one task shows.
type taskView struct {
	taskRow
	Incidents []incidentView // the newest first
	Older     int            // incidents
	Events    []*proto.JobEvent
	Logs      []logFile
	Log       *logView // nil: the task has written nothing yet
	LogError  string   // why the log cannot be shown
}

// task shows one task: its attempts, what happened to it and what it wrote.
func (s *server) task(r *http.Request, status *proto.JobStatus) (string, any, error) {
	p := parametersOf(r)
	attempt, process := p.number("attempt", lastAttempt, 0), p.number("process", 0, 0)
	t := taskOf(status, p.Get("task"))
	switch {
	case p.err != nil:
		return "", nil, p.err
	case t == nil:
		return "", nil, errNotFound
	}
	one := &proto.JobStatus{State: status.State, Tasks: []*proto.TaskStatus{t}, Incidents: status.Incidents}
	rows, _ := taskRows(one, taskQuery{}, time.Now())
	v := &taskView{taskRow: rows[0]}
	v.Incidents, v.Older = newestIncidents(status, nil, t.Task)
	for _, e := range slices.Backward(status.Events) {
		if e.Task == t.Task && len(v.Events) < eventsShown {
			v.Events = append(v.Events, e)
		}
	}
	var err error
	if v.Logs, err = s.logsOf(r.Context(), t.Task); err == nil && len(v.Logs) > 0 {
		v.Log, err = s.readLog(r.Context(), chooseLog(v.Logs, attempt, process), p.Get("q"))
	}
	if err != nil {
		v.LogError = err.Error()
	}
	return "task", v, nil
}

// taskOf returns the task with a name; nil if the job has none.
func taskOf(status *proto.JobStatus, name string) *proto.TaskStatus {
	i := slices.IndexFunc(status.Tasks, func(t *proto.TaskStatus) bool { return t.Task == name })
	if i < 0 {
		return nil
	}
	return status.Tasks[i]
}

// lastAttempt stands for the last attempt that has a log.
const lastAttempt = -1

// chooseLog returns the log of a process of an attempt.
func chooseLog(logs []logFile, attempt, process int) logFile {
	last := logs[len(logs)-1]
	if attempt == lastAttempt {
		attempt = last.Attempt
	}
	for _, l := range logs {
		if l.Attempt == attempt && l.Process == process {
			return l
		}
	}
	return logFile{Task: last.Task, Attempt: attempt, Process: process}
}
