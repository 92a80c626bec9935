package incontainer

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/doctor/nodecheck"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// NewDoctorMasterCommand is what the application master of `doctor --cluster` runs. Users do
// not call it.
func NewDoctorMasterCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor-am", Short: "check the cluster's nodes", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctorMaster(cmd.Context()) },
	}
}

// NewDoctorNodeCommand is what the containers of `doctor --cluster` run. Users do not call it.
func NewDoctorNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor-node", Short: "check the node that this runs on", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			configuration := func() (*conf.Conf, error) {
				_, c, err := containerCredentials()
				return c, err
			}
			return nodecheck.Examine(cmd.Context(), exe, configuration, cmd.ErrOrStderr())
		},
	}
}

func runDoctorMaster(ctx context.Context) error {
	all, c, err := containerCredentials()
	if err != nil {
		return err
	}
	resources, err := hadoop.DecodeResources(os.Getenv(hadoop.EnvResources))
	if err != nil {
		return err
	}
	var nodes []string
	if list := os.Getenv(nodecheck.EnvNodes); list != "" {
		nodes = strings.Split(list, ",")
	}
	return nodecheck.Run(ctx, nodecheck.Config{
		Conf: c, Credentials: all, Directory: os.Getenv(nodecheck.EnvDirectory), User: os.Getenv(nodecheck.EnvUser),
		Nodes: nodes, Host: os.Getenv("NM_HOST"), Resources: resources,
		Image: hadoop.Image{Name: os.Getenv(nodecheck.EnvImage), Runtime: os.Getenv(nodecheck.EnvRuntime)},
	})
}

// containerCredentials reads the tokens that came with the container, and the Hadoop
// configuration of the submitting user.
func containerCredentials() (*token.Credentials, *conf.Conf, error) {
	all, err := token.FromEnvironment()
	if err != nil {
		return nil, nil, err
	}
	c, err := conf.Unpack(all.Secrets[proto.SecretConf])
	if err != nil {
		return nil, nil, fmt.Errorf("reading the Hadoop configuration that came with the container: %w", err)
	}
	return all, c, nil
}
