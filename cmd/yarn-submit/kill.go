package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast/client/jobs"
	"holdfast/proto"
)

func newKillCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "kill JOB",
		Short: "end a job",
		Long: `Kill ends a job in good order, or by force if its application master does not
answer, and returns once it has ended. Of a job that had ended already it says
how, with exit code 0.

` + whichJob,
		Example: `  yarn-submit kill mnist
  yarn-submit kill local-20260301-101500-ab3d`,
		Args: between(1, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error { return runKill(cmd, o, args[0]) },
	}
	cmd.ValidArgsFunction = completeJob
	o.add(cmd)
	return cmd
}

func runKill(cmd *cobra.Command, o *output, ref string) error {
	if err := o.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	s, already, err := j.Kill(ctx, "killed by yarn-submit kill")
	if err != nil {
		return err
	}
	if o.json() {
		return writeProto(cmd.OutOrStdout(), s)
	}
	said := ""
	if already {
		said = "had already ended: "
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s%s\n", j.ID, said, proto.StateWord(s.State))
	return err
}
