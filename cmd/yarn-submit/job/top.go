package job

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/client/jobs/logs"
	"holdfast/cmd/yarn-submit/cli"
)

// NewTopCommand returns the command top.
func NewTopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "top [JOB]",
		Short: "watch a job's tasks on the whole terminal",
		Long: `Top shows a job's tasks as they change, and what one of them wrote last, or its
losses. It needs a terminal. Keys:

` + topKeys() + `
` + cli.WhichJob,
		Example: `  yarn-submit top
  yarn-submit top mnist`,
		Args:              cli.Between(0, 1, "[JOB]"),
		ValidArgsFunction: cli.CompleteJob,
		RunE:              func(cmd *cobra.Command, args []string) error { return runTop(cmd, cli.JobOf(args)) },
	}
}

// topKeys lists the keys for --help.
func topKeys() string {
	var b strings.Builder
	for _, k := range jobs.TopKeys() {
		fmt.Fprintf(&b, "  %-13s  %s\n", k.Keys, k.Does)
	}
	return b.String()
}

// topLogTimeout bounds how long top waits for the log that it shows.
const topLogTimeout = 2 * time.Second

func runTop(cmd *cobra.Command, ref string) error {
	if cli.Width() == 0 {
		return client.Usagef("top needs a terminal: elsewhere use yarn-submit status")
	}
	ctx := cmd.Context()
	j, err := jobs.Find(ctx, ref)
	if err != nil {
		return err
	}
	defer j.Close()
	in := int(os.Stdin.Fd())
	former, err := term.MakeRaw(in)
	if err != nil {
		return fmt.Errorf("read single keys from the terminal: %w", err)
	}
	defer func() { _ = term.Restore(in, former) }()
	return jobs.Top(ctx, j, jobs.TopOptions{
		Out: cmd.OutOrStdout(), Keys: keys(), Size: cli.TerminalSize,
		Log: func(ctx context.Context, task string, lines int) (list []string, err error) {
			ctx, cancel := context.WithTimeout(ctx, topLogTimeout)
			defer cancel()
			silence, err := logs.Read(ctx, j, logs.Options{Of: task, Attempt: logs.All, Tail: lines}, func(l logs.Line) error {
				list = append(list, l.Text)
				return nil
			})
			if silence != "" {
				list = append(list, silence)
			}
			return list, err
		},
	})
}

// keys sends the keys that are pressed. A read from a terminal cannot be cancelled: the
// goroutine stays until the process ends.
func keys() <-chan string {
	list := make(chan string)
	go func() {
		defer close(list)
		buffer := make([]byte, 16)
		for {
			n, err := os.Stdin.Read(buffer)
			if err != nil {
				return
			}
			for rest := string(buffer[:n]); rest != ""; {
				length := 1
				if strings.HasPrefix(rest, "\x1b[") || strings.HasPrefix(rest, "\x1bO") {
					length = min(len("\x1b[A"), len(rest))
				}
				list <- keyOf(rest[:length])
				rest = rest[length:]
			}
		}
	}()
	return list
}

// keyOf names what a terminal sends for a key.
func keyOf(sent string) string {
	switch sent {
	case "\x1b[A", "\x1bOA":
		return "up"
	case "\x1b[B", "\x1bOB":
		return "down"
	case "\r", "\n":
		return "enter"
	case "\x1b":
		return "escape"
	case "\x03", "\x04":
		return "interrupt"
	}
	return sent
}
