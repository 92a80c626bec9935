package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"holdfast/client"
)

func newDoctorCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what this machine and the cluster allow, and what to do about the rest",
		Args:  between(0, 0, ""),
		RunE:  func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, o) },
	}
	o.add(cmd)
	return cmd
}

func runDoctor(cmd *cobra.Command, o *output) error {
	if err := o.check(); err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	list := client.Diagnose(cmd.Context(), exe)
	if o.json() {
		err = writeJSON(cmd.OutOrStdout(), list)
	} else {
		err = client.WriteFindings(cmd.OutOrStdout(), list)
	}
	if err != nil {
		return err
	}
	return client.FindingsError(list)
}
