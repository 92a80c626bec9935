package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/client/cluster"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/proto"
)

// Bounds of what a shell that completes a word waits for, and shows.
const (
	completionTimeout = 3 * time.Second
	completionJobs    = 50
)

// Completing bounds the context of what completes words for a shell: what cannot be asked by then is
// not completed.
func Completing(ctx context.Context) context.Context {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	context.AfterFunc(ctx, cancel)
	return ctx
}

// CompleteJob completes JOB.
func CompleteJob(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return JobsToComplete(cmd), cobra.ShellCompDirectiveNoFileComp
}

// JobsToComplete returns the names and ids of jobs. What cannot be asked is not completed.
func JobsToComplete(cmd *cobra.Command) []cobra.Completion {
	list, _, _ := jobs.List(cmd.Context(), jobs.ListOptions{Limit: completionJobs}) // those that could be found
	var words []cobra.Completion
	seen := map[string]bool{}
	for _, e := range list {
		state := proto.StateWord(e.State)
		if !seen[e.Name] && e.Name != "" && !strings.ContainsAny(e.Name, "\t\n ") {
			seen[e.Name] = true
			words = append(words, cobra.CompletionWithDesc(e.Name, state+", "+e.Id))
		}
		words = append(words, cobra.CompletionWithDesc(e.Id, state+", "+e.Name))
	}
	return words
}

// CompleteQueue completes the queues that take applications. Without a cluster that answers,
// none is completed.
func CompleteQueue(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	c, err := cluster.Connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	root, err := c.RM.Queue(cmd.Context(), "root")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return root.Leaves(), cobra.ShellCompDirectiveNoFileComp
}

// CompleteJobThenRole completes JOB and then ROLE=.
func CompleteJobThenRole(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) != 1 {
		return CompleteJob(cmd, args, word)
	}
	var words []cobra.Completion
	for _, t := range tasksOf(cmd, args[0]) {
		if w := t.Role + "="; !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// tasksOf returns the tasks of a job; none if it is not found in time.
func tasksOf(cmd *cobra.Command, ref string) []*proto.TaskStatus {
	j, err := jobs.Find(cmd.Context(), ref)
	if err != nil {
		return nil
	}
	defer j.Close()
	s, err := j.Status(cmd.Context())
	if err != nil {
		return nil
	}
	return s.Tasks
}

// CompleteJobThenTask completes JOB and then a task of it, or with more a role or the
// application master.
func CompleteJobThenTask(more bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) != 1 {
			return CompleteJob(cmd, args, word)
		}
		tasks := tasksOf(cmd, args[0])
		if tasks == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var words []cobra.Completion
		for _, t := range tasks {
			if more && !slices.Contains(words, t.Role) {
				words = append(words, t.Role)
			}
		}
		for _, t := range tasks {
			words = append(words, cobra.CompletionWithDesc(t.Task, proto.StateWord(t.State)))
		}
		if more {
			words = append(words, cobra.CompletionWithDesc(logs.Master, "the application master"))
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}
