package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/doctor"
	"holdfast/internal/hadoop/yarn"
)

type doctorOptions struct {
	cli.Output
	cluster bool
	nodes   []string
	queue   string
	image   yarn.Image
}

func newDoctorCommand() *cobra.Command {
	o := &doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "say what this machine and the cluster allow, and what to do",
		Long: `Doctor looks at this machine and at the cluster's services. With --cluster or
--node it also runs one small container (256 MB, a few seconds) on each node and
says what jobs can do there.`,
		Example: `  yarn-submit doctor
  yarn-submit doctor --cluster --queue research`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, o) },
	}
	cmd.Flags().BoolVar(&o.cluster, "cluster", false, "look at every node, too")
	cmd.Flags().StringSliceVar(&o.nodes, "node", nil, "look at these `HOSTS`, as YARN names them, separated by commas")
	cmd.Flags().StringVar(&o.queue, "queue", "", "YARN's `QUEUE` for that (default \"default\")")
	cmd.Flags().StringVar(&o.image.Name, "image", "", "look at the nodes from within this container `IMAGE`")
	cmd.Flags().StringVar(&o.image.Runtime, "image-runtime", "", "the `RUNTIME` for it, "+strings.Join(yarn.Runtimes, " or ")+" (default \""+yarn.Runtimes[0]+"\")")
	o.Add(cmd)
	return cmd
}

func runDoctor(cmd *cobra.Command, o *doctorOptions) error {
	if o.cluster && len(o.nodes) > 0 {
		return client.Usagef("--cluster is all nodes and --node some: leave one of them out")
	}
	if r := o.image.Runtime; r != "" && !slices.Contains(yarn.Runtimes, r) {
		return client.Usagef("--image-runtime is %s: write %s", r, strings.Join(yarn.Runtimes, " or "))
	}
	if o.image.Name != "" && !o.cluster && len(o.nodes) == 0 {
		return client.Usagef("--image is for the nodes: add --cluster, or --node HOSTS")
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program itself: %w", err)
	}
	list := doctor.Diagnose(cmd.Context(), exe)
	var failed error // of the nodes: what was found here is told all the same
	if o.cluster || len(o.nodes) > 0 {
		found, err := doctor.DiagnoseNodes(cmd.Context(), exe, o.queue, o.nodes, o.image)
		list, failed = append(list, found...), err
	}
	if err := cmd.Context().Err(); err != nil { // then what was found says nothing
		return errors.Join(err, failed)
	}
	if o.JSON() {
		err = cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"findings": list})
	} else {
		err = doctor.Write(cmd.OutOrStdout(), list)
	}
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	return doctor.Error(list)
}
