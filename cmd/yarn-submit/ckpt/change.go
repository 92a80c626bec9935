package ckpt

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/client/checkpoints"
	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt/inspect"
)

// changeOptions are those of commands that change checkpoints.
type changeOptions struct {
	cli.Output
	yes bool
}

func (o *changeOptions) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	o.Add(cmd)
}

// change plans a change of each directory that a user named, shows the plan, and carries it
// out if a person agrees. show writes a plan, and done what has come of it.
func change[C inspect.Plan](cmd *cobra.Command, o *changeOptions, ref string, planner inspect.Planner, show, done func(C)) error {
	consent := cli.Asker{Cmd: cmd, Yes: o.yes}
	err := opened(cmd, ref, jobs.FindToChange, func(d checkpoints.Directory) error {
		planned, err := planner(cmd.Context(), d.Store)
		if inspect.IsUnplannable(err) {
			return client.Usagef("%w", err)
		}
		if err != nil {
			return err
		}
		plan := planned.(C)
		if !o.JSON() {
			show(plan)
		}
		if question := plan.Question(); question != "" && consent.Given(question) {
			err := plan.Execute(cmd.Context(), d.Store, inspect.Watch{
				Progress: cli.CountBar(cmd, "checkpoints"),
				Wait: func(why string, most time.Duration) (over func()) {
					cli.Note(cmd, why)
					return cli.TimeBar(cmd, "waiting", most)
				},
			})
			if err != nil {
				return err
			}
		}
		if o.JSON() {
			return cli.WriteJSON(cmd.OutOrStdout(), plan)
		}
		done(plan)
		return nil
	})
	if err != nil {
		return err
	}
	return consent.Err()
}

// stepText is the step of a checkpoint as text.
func stepText(c inspect.Checkpoint) string {
	if c.Step == nil {
		return "-"
	}
	return fmt.Sprint(*c.Step)
}
