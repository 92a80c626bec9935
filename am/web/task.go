package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"holdfast/proto"
)

// taskView is what the page of one task shows.
type taskView struct {
	taskRow
	Incidents []incidentView // the newest first
	Events    []*proto.JobEvent
	Logs      []logFile
	Log       *logView // nil: the task has written nothing yet
	LogError  string   // why the log cannot be shown
}

// task shows one task: its attempts, what happened to it and what it wrote.
func (s *server) task(r *http.Request, status *proto.JobStatus) (string, any, error) {
	p := r.URL.Query()
	t := taskOf(status, p.Get("task"))
	if t == nil {
		return "", nil, errNotFound
	}
	one := &proto.JobStatus{State: status.State, Tasks: []*proto.TaskStatus{t}, Incidents: status.Incidents}
	rows, _ := taskRows(one, taskQuery{}, time.Now())
	v := &taskView{taskRow: rows[0]}
	all, _ := newestIncidents(status, nil)
	v.Incidents = slices.DeleteFunc(all, func(i incidentView) bool { return i.Task != t.Task })
	for _, e := range slices.Backward(status.Events) {
		if e.Task == t.Task && len(v.Events) < eventsShown {
			v.Events = append(v.Events, e)
		}
	}
	var err error
	if v.Logs, err = s.logsOf(r.Context(), t.Task); err == nil && len(v.Logs) > 0 {
		v.Log, err = s.readLog(r.Context(), chooseLog(v.Logs, p), p.Get("q"))
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

// chooseLog returns the log that the parameters name, or that of the first process of the
// last attempt that has one.
func chooseLog(logs []logFile, p url.Values) logFile {
	last := logs[len(logs)-1]
	attempt, err := strconv.Atoi(p.Get("attempt"))
	if err != nil {
		attempt = last.Attempt
	}
	process, _ := strconv.Atoi(p.Get("process")) // else 0
	for _, l := range logs {
		if l.Attempt == attempt && l.Process == process {
			return l
		}
	}
	return logFile{Task: last.Task, Attempt: attempt, Process: process}
}
