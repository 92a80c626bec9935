package incontainer

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/container"
	"holdfast/internal/hadoop/token"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// NewAgentCommand is what a task's container runs. People do not call it.
func NewAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "agent",
		Short:  "run a container's agent",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAgent(cmd.Context())
		},
	}
}

func runAgent(ctx context.Context) error {
	debug.SetGCPercent(50) // an agent's memory is the task's loss
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	name := os.Getenv(proto.EnvContainer)
	s, err := readSecrets(proto.SecretAgent)
	if err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	programs := filepath.Join(dir, "tokens")
	fresh := func() error {
		c, err := token.FromEnvironment()
		if err != nil {
			return err
		}
		if c = c.ForPrograms(); len(c.Tokens) == 0 {
			programs = ""
			return nil
		}
		return c.WriteFile(programs)
	}
	if err := fresh(); err != nil {
		return err
	}
	ownLog := ""
	if os.Getenv("NM_HOST") != "" { // set by every NodeManager; a local job has the log in its directory
		ownLog = proto.AgentLogName(name)
	}
	err = container.Run(ctx, container.Config{
		Master: os.Getenv(proto.EnvMaster), Container: name, Host: os.Getenv(proto.EnvHost),
		JobDirectory: os.Getenv(proto.EnvJobDirectory),
		Keys:         s.keys, Conf: s.conf, Exe: exe, TokenFile: programs,
		NewTokens: func(credentials []byte) error {
			if err := token.Replace(credentials); err != nil {
				return err
			}
			return fresh()
		},
		OwnProcess: true, Image: hadoop.AskedImage(), Unfit: hadoop.CheckImage(),
		WorkDir: dir, LogDir: dir, OwnLog: ownLog, TmpDir: filepath.Join(dir, "tmp"),
		Log: logrus.WithFields(logrus.Fields{"app": os.Getenv(proto.EnvJob), "container": name}),
	})
	if ctx.Err() != nil { // by a signal only
		return client.ErrTerminated
	}
	return err
}
