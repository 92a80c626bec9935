package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"holdfast/am/web/access"
	"holdfast/client"
	"holdfast/client/ui"
	"holdfast/cmd/yarn-submit/cli"
)

type uiOptions struct {
	cli.Output
	ui.Options
	listen string
}

// uiCloseTimeout is how long requests may take to end once ui is interrupted.
const uiCloseTimeout = 2 * time.Second

func newUICommand() *cobra.Command {
	o := &uiOptions{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "show jobs, running and ended, in a browser",
		Long: `Ui serves pages on this machine until it is interrupted, and prints the address
to open: your jobs and, of each, the pages that it has while it runs, from what
is kept of it after its end. Checkpoints can be removed and rolled back on them.
Only a browser that comes with that address is let in.`,
		Example: `  yarn-submit ui
  yarn-submit ui --listen 127.0.0.1:8000
  yarn-submit ui --checkpoint hdfs:///shared/models/bert`,
		Args: cli.Between(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return runUI(cmd, o) },
	}
	cmd.Flags().StringVar(&o.listen, "listen", "127.0.0.1:0", "`HOST:PORT` to serve at; port 0: any that is free")
	cmd.Flags().StringArrayVar(&o.Checkpoints, "checkpoint", nil, "show the checkpoints in a directory, too: `URI|JOB`; may be repeated")
	cmd.Flags().StringArrayVar(&o.History, "history-dir", nil, "show also the jobs whose directories are in the one at `URI`; may be repeated")
	o.Add(cmd)
	return cmd
}

func runUI(cmd *cobra.Command, o *uiOptions) error {
	host, port, err := net.SplitHostPort(o.listen)
	if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil {
		return client.Usagef("--listen %s: write HOST:PORT, as 127.0.0.1:0 for any free port of this machine", o.listen)
	}
	ctx := cmd.Context()
	pages, err := ui.New(ctx, o.Options)
	if err != nil {
		return err
	}
	defer pages.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.listen)
	if err != nil {
		return client.Usagef("serve pages at %s: %w; give another port or address of this machine with --listen", o.listen, err)
	}
	_, port, err = net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	guard := ui.NewGuard(host, port)
	shown := host
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		shown = "localhost"
	}
	if err := tellAddress(cmd, o, guard.Address(net.JoinHostPort(shown, port)), listener.Addr()); err != nil {
		listener.Close()
		return err
	}
	server := access.NewServer(guard.Wrap(pages))
	served := make(chan error, 1)
	go func() { served <- server.Serve(access.Limited(listener)) }()
	select {
	case <-ctx.Done():
		closing, cancel := context.WithTimeout(context.Background(), uiCloseTimeout)
		defer cancel()
		_ = server.Shutdown(closing) // what is shown by then is left; a change is broken off as that of a command
		<-served
		return nil
	case err := <-served:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return fmt.Errorf("serve pages at %s: %w", o.listen, err)
	}
}

// tellAddress prints the address to open.
func tellAddress(cmd *cobra.Command, o *uiOptions, address string, listening net.Addr) error {
	if o.JSON() {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]string{"url": address})
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), address); err != nil {
		return err
	}
	cli.Note(cmd, "open this address in a browser; Ctrl-C ends the pages")
	if at, ok := listening.(*net.TCPAddr); ok && !at.IP.IsLoopback() {
		cli.Note(cmd, "the pages are not encrypted: whoever can read the network reads them, and the token; a port of 127.0.0.1 that ssh -L forwards is safe")
	}
	return nil
}
