// Package ckpt is the commands about checkpoints, yarn-submit ckpt ...: a file for each.
package ckpt

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/client/jobs"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
)

// NewCommand returns the command ckpt, with those below it.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ckpt",
		Short: "browse checkpoints",
		Long: `Ckpt looks at checkpoints where they are stored; no job needs to run.
They are named by the directory (hdfs://... or a local path) or by the job that
writes them, its id or name.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.UnknownCommand(cmd, args); err != nil {
				return err
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(
		newLsCommand(), newShowCommand(), newCatCommand(), newDiffCommand(), newVerifyCommand(),
		newGetCommand(), newPruneCommand(), newRollbackCommand(),
	)
	return cmd
}

// opened opens what a user named, a job by find. The stores are closed when see has returned.
func opened(cmd *cobra.Command, ref string, find jobs.Finder, see func([]checkpoints.Directory) error) error {
	dirs, err := checkpoints.Directories(cmd.Context(), ref, find)
	if err != nil {
		return err
	}
	defer func() {
		for _, d := range dirs {
			d.Store.Close()
		}
	}()
	return see(dirs)
}

// listed opens what a user named, to look at it, and lists the checkpoints in it.
func listed(cmd *cobra.Command, ref string, see func([]checkpoints.Listed) error) error {
	return opened(cmd, ref, jobs.Find, func(dirs []checkpoints.Directory) error {
		var all []checkpoints.Listed
		for _, d := range dirs {
			list, err := hdfsckpt.List(cmd.Context(), d.Store)
			if err != nil {
				return err
			}
			all = append(all, checkpoints.Listed{Directory: d, List: list})
		}
		return see(all)
	})
}

// chosen opens what a user named, and looks at the checkpoint that which means there, or where
// that is empty at the newest complete one of each directory.
func chosen(cmd *cobra.Command, ref, which string, see func(*checkpoints.Chosen) error) error {
	return listed(cmd, ref, func(dirs []checkpoints.Listed) error {
		if which != "" {
			c, err := checkpoints.Choose(dirs, which)
			if err != nil {
				return err
			}
			return see(c)
		}
		for _, d := range dirs {
			c, err := checkpoints.Newest(d)
			if err == nil {
				err = see(c)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// What flags of several commands do.
const (
	filterUsage = "only tensors whose names are like `GLOB` (* any text, ? one character), or have it in them; one that is called so is meant alone"
	wideUsage   = "cut nothing to the width of the terminal"
)

// filtered returns what reports whether a tensor's name is selected by a filter of filterUsage.
func filtered(filter string, in ...*format.Tensors) func(name string) bool {
	for _, t := range in {
		if t.Find(filter) != nil {
			return func(name string) bool { return name == filter }
		}
	}
	return inspect.Like(filter)
}

// columns is how wide tables are at most; 0: of any width.
func columns(wide bool) int {
	if wide {
		return 0
	}
	return cli.Columns()
}

// completeCheckpoints completes URI|JOB and then so many steps.
func completeCheckpoints(steps int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			if strings.HasPrefix(word, "/") || strings.HasPrefix(word, ".") {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return cli.JobsToComplete(cmd), cobra.ShellCompDirectiveNoFileComp
		case len(args) > steps:
			return nil, cobra.ShellCompDirectiveDefault
		}
		var words []cobra.Completion
		// What cannot be listed is not completed.
		_ = listed(cmd, args[0], func(dirs []checkpoints.Listed) error {
			for _, d := range dirs {
				for _, c := range slices.Backward(d.List) {
					if c.Step != format.NoStep {
						words = append(words, cobra.CompletionWithDesc(strconv.FormatInt(c.Step, 10), string(c.State)))
					}
				}
			}
			return nil
		})
		return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
