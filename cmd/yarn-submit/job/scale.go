package job

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// NewScaleCommand returns the command scale.
func NewScaleCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "scale JOB ROLE=N",
		Short: "have a job work with more or fewer tasks",
		Long: `Scale has a job work with N tasks of a role, within the range that it was
submitted with, as --worker 2..8.

Tasks beyond that number leave their containers, and ask for none. Ranks that
work together do so when the next checkpoint is complete, or after 30 seconds:
all are stopped in order, and those that stay start again from there. More tasks
ask for containers, and join at the next complete checkpoint, once they are
prepared. Workers with parameter servers come and go one by one; the others work
on.

Scale returns once the application master has agreed; status shows how it goes.
Only the job's user may.

` + cli.WhichJobExactly,
		Example: `  yarn-submit scale mnist worker=8
  yarn-submit scale application_1772356500000_0042 worker=2`,
		Args: cli.Between(2, 2, "JOB ROLE=N"),
		RunE: func(cmd *cobra.Command, args []string) error { return runScale(cmd, o, args[0], args[1]) },
	}
	cmd.ValidArgsFunction = cli.CompleteJobThenRole
	o.Add(cmd)
	return cmd
}

func runScale(cmd *cobra.Command, o *cli.Output, ref, arg string) error {
	role, number, _ := strings.Cut(arg, "=")
	n, err := strconv.ParseInt(number, 10, 32)
	if role == "" || err != nil || n < 0 {
		return client.Usagef("%q is not ROLE=N, as in worker=8", arg)
	}
	ctx := cmd.Context()
	j, err := jobs.FindToChange(ctx, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	now, err := j.Status(ctx)
	if err == nil {
		err = jobs.CheckRuns(now)
	}
	if err == nil {
		err = checkRole(now, role)
	}
	if err != nil {
		return err
	}
	if err := j.Scale(ctx, role, int32(n)); err != nil {
		return err
	}
	if !o.JSON() {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: the role %s is to have %d tasks\n", j.ID, role, n)
		return err
	}
	s, err := j.Status(ctx)
	if err != nil {
		return err
	}
	return cli.WriteProto(cmd.OutOrStdout(), s)
}

// checkRole returns an error that names the roles of a job if it has none with this name. Of a
// job whose tasks are not known yet, its application master knows.
func checkRole(s *proto.JobStatus, role string) error {
	var known []string
	for _, t := range s.Tasks {
		if !slices.Contains(known, t.Role) {
			known = append(known, t.Role)
		}
	}
	if len(known) == 0 || slices.Contains(known, role) {
		return nil
	}
	return client.Usagef("there is no role %s: its roles are %s%s", role, strings.Join(known, ", "), client.DidYouMean(role, known))
}
