package job

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// NewDescribeCommand returns the command describe.
func NewDescribeCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "describe JOB TASK",
		Short: "show all that is known of a task",
		Long: `Describe shows a task of a job, running or ended: where it runs, its attempts
and losses, how long its last start took, and what happened to it.

` + cli.WhichJob,
		Example: `  yarn-submit describe mnist worker-1
  yarn-submit describe mnist ps-0 --output json`,
		Args:              cli.Between(2, 2, "JOB TASK"),
		ValidArgsFunction: cli.CompleteJobThenTask(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDescribe(cmd, o, args[0], args[1]) },
	}
	o.Add(cmd)
	return cmd
}

// described is the JSON of describe.
type described struct {
	Task      json.RawMessage   `json:"task"`
	Incidents []json.RawMessage `json:"incidents"`
	Events    []json.RawMessage `json:"events"`
}

func runDescribe(cmd *cobra.Command, o *cli.Output, ref, task string) error {
	j, s, t, err := findTask(cmd.Context(), jobs.Find, ref, task)
	if err != nil {
		return err
	}
	defer j.Close()
	if !o.JSON() {
		return jobs.WriteTask(cmd.OutOrStdout(), s, t, cli.Columns())
	}
	var d described
	if d.Task, err = proto.JSONPart(t); err != nil {
		return err
	}
	if d.Incidents, err = jsonParts(jobs.IncidentsOf(s, t.Task)); err != nil {
		return err
	}
	if d.Events, err = jsonParts(jobs.EventsOf(s, t.Task)); err != nil {
		return err
	}
	return cli.WriteJSON(cmd.OutOrStdout(), d)
}

// jsonParts returns messages as parts of an answer.
func jsonParts[M pb.Message](list []M) ([]json.RawMessage, error) {
	parts := make([]json.RawMessage, len(list))
	for i, m := range list {
		var err error
		if parts[i], err = proto.JSONPart(m); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// findTask returns a job, its state and one of its tasks. The caller closes the job.
func findTask(ctx context.Context, find jobs.Finder, ref, task string) (*jobs.Job, *proto.JobStatus, *proto.TaskStatus, error) {
	j, err := find(ctx, ref)
	if err != nil {
		return nil, nil, nil, err
	}
	s, err := j.Status(ctx)
	var t *proto.TaskStatus
	if err == nil {
		t, err = oneTask(s, task)
	}
	if err != nil {
		j.Close()
		return nil, nil, nil, err
	}
	return j, s, t, nil
}

// findRunningTask is findTask for what only a task that runs can do: a job that has ended is
// an error.
func findRunningTask(ctx context.Context, find jobs.Finder, ref, task string) (*jobs.Job, *proto.TaskStatus, error) {
	j, s, t, err := findTask(ctx, find, ref, task)
	if err == nil {
		if err = jobs.CheckRuns(s); err != nil {
			j.Close()
		}
	}
	return j, t, err
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
