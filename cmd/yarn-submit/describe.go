package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/proto"
)

func newDescribeCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "describe JOB TASK",
		Short: "show all that is known of a task",
		Long: `Describe shows a task of a job, running or ended: where it runs, its attempts
and losses, how long its last start took, and what happened to it.

` + whichJob,
		Example: `  yarn-submit describe mnist worker-1
  yarn-submit describe mnist ps-0 --output json`,
		Args:              between(2, 2, "JOB TASK"),
		ValidArgsFunction: completeJobThenTask(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDescribe(cmd, o, args[0], args[1]) },
	}
	o.add(cmd)
	return cmd
}

// described is the JSON of describe.
type described struct {
	Task      json.RawMessage   `json:"task"`
	Incidents []json.RawMessage `json:"incidents"`
	Events    []json.RawMessage `json:"events"`
}

func runDescribe(cmd *cobra.Command, o *output, ref, task string) error {
	if err := o.check(); err != nil {
		return err
	}
	j, err := jobs.Find(cmd.Context(), ref)
	if err != nil {
		return err
	}
	defer j.Close()
	s, err := j.Status(cmd.Context())
	if err != nil {
		return err
	}
	t, err := oneTask(s, task)
	if err != nil {
		return err
	}
	if !o.json() {
		return jobs.WriteTask(cmd.OutOrStdout(), s, t, columns())
	}
	d := described{Incidents: []json.RawMessage{}, Events: []json.RawMessage{}}
	if d.Task, err = proto.JSONPart(t); err != nil {
		return err
	}
	for _, i := range jobs.IncidentsOf(s, t.Task) {
		text, err := proto.JSONPart(i)
		if err != nil {
			return err
		}
		d.Incidents = append(d.Incidents, text)
	}
	for _, e := range jobs.EventsOf(s, t.Task) {
		text, err := proto.JSONPart(e)
		if err != nil {
			return err
		}
		d.Events = append(d.Events, text)
	}
	return writeJSON(cmd.OutOrStdout(), d)
}

// oneTask returns the task that a user means.
func oneTask(s *proto.JobStatus, task string) (*proto.TaskStatus, error) {
	list, err := logs.Tasks(s, task)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, client.Usagef("%q is a role with %d tasks: name one of them, as in %s", task, len(list), list[0].Task)
	}
	return list[0], nil
}
