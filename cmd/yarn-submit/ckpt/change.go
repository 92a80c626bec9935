package ckpt

import (
	"errors"
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

// change plans a change of each directory that a user named, shows the plans, and carries those
// out to which a person agrees, once all of them can be. show writes a plan, and done what has
// come of it.
func change[C inspect.Plan](cmd *cobra.Command, o *changeOptions, ref string, planner inspect.Planner, show, done func(C)) error {
	consent := cli.Asker{Cmd: cmd, Yes: o.yes}
	err := opened(cmd, ref, jobs.FindToChange, func(dirs []checkpoints.Directory) error {
		var plans []C
		for _, d := range dirs {
			planned, err := planner(cmd.Context(), d.Store)
			if inspect.IsUnplannable(err) {
				return client.Usagef("%w", err)
			}
			if err != nil {
				return err
			}
			plans = append(plans, planned.(C))
		}
		var agreed []inspect.Planned
		for i, plan := range plans {
			if !o.JSON() {
				show(plan)
			}
			question := plan.Question()
			if question == "" {
				continue
			}
			given, err := consent.Given(question)
			if err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
			if given {
				agreed = append(agreed, inspect.Planned{Plan: plan, Store: dirs[i].Store})
			}
		}
		failed := inspect.Execute(cmd.Context(), agreed, inspect.Watch{
			Progress: cli.CountBar(cmd, "checkpoints"),
			Wait: func(why string, most time.Duration) (over func()) {
				cli.Note(cmd, why)
				return cli.TimeBar(cmd, "waiting", most)
			},
		})
		for _, plan := range plans {
			switch {
			case failed != nil && !plan.IsDone(): // the error says what has come of it
			case o.JSON():
				if err := cli.WriteJSON(cmd.OutOrStdout(), plan); err != nil {
					return errors.Join(failed, err)
				}
			default:
				done(plan)
			}
		}
		return failed
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
