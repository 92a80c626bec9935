package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"holdfast/cmd/yarn-submit/cli"
)

// version is set when a release is built (-ldflags "-X main.version=...").
var version = "development"

func newVersionCommand() *cobra.Command {
	o := &cli.Output{}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "print the version",
		Example: `  yarn-submit version
  yarn-submit version --output json`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runVersion(cmd, o) },
	}
	o.Add(cmd)
	return cmd
}

func runVersion(cmd *cobra.Command, o *cli.Output) error {
	v := map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH, "revision": ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				v["revision"] = s.Value
			}
		}
	}
	if o.JSON() {
		return cli.WriteJSON(cmd.OutOrStdout(), v)
	}
	line := fmt.Sprintf("yarn-submit %s", v["version"])
	if r := v["revision"]; r != "" {
		line += fmt.Sprintf(" (%.12s)", r)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, %s, %s\n", line, v["go"], v["platform"])
	return err
}
