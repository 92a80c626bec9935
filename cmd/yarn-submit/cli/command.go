// Package cli is what the commands of yarn-submit share: how arguments and flags are
// checked and completed, how output and errors are written, and how a person is asked.
package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
)

// WhichJob is what commands say of JOB: package jobs, Find.
const WhichJob = `JOB is a job's id or name, or how one of them begins: of several jobs of one
name, the one that has not ended is meant, and of ended ones the newest. Where
several of the name have not ended, they are listed, and nothing is done (exit
code 2). Where JOB may be left out, your newest job is meant.`

// WhichJobExactly is the same of commands that end, change or remove something: package jobs,
// FindToChange.
const WhichJobExactly = `JOB is a job's whole id or name: of several jobs of one name, the one that has
not ended is meant, and of ended ones the newest. Where several of the name have
not ended, they are listed, and nothing is done (exit code 2).`

// Between demands a number of arguments, whose names are in usage. None may be empty: where what
// an optional one names is meant, the command would take another thing without it.
func Between(least, most int, usage string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		problem := ""
		switch {
		case len(args) > most:
			problem = fmt.Sprintf("%q is one too many", args[most])
		case len(args) < least:
			problem = "something is missing"
		case slices.Contains(args, ""):
			problem = "an argument is empty, as that of a variable that is not set"
		default:
			return nil
		}
		return client.Usagef("%s: write %s", problem, strings.TrimSpace(cmd.CommandPath()+" "+usage))
	}
}

// JobOf returns the first argument, which names a job; "" if there is none.
func JobOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// Note writes what a person should know of, and which is no error.
func Note(cmd *cobra.Command, text string) {
	fmt.Fprintln(cmd.ErrOrStderr(), "yarn-submit: note:", text)
}
