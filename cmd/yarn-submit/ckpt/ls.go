package ckpt

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client/checkpoints"
	"holdfast/client/terminal"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/retain"
)

type lsOptions struct {
	cli.Output
	all, wide bool
}

func newLsCommand() *cobra.Command {
	o := &lsOptions{}
	cmd := &cobra.Command{
		Use:   "ls URI|JOB",
		Short: "list checkpoints: step, age, size, shards, whether complete",
		Example: `  yarn-submit ckpt ls mnist
  yarn-submit ckpt ls hdfs:///user/me/mnist --wide`,
		Args: cli.Between(1, 1, "URI|JOB"),
		RunE: func(cmd *cobra.Command, args []string) error { return runLs(cmd, o, args[0]) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "list what was moved aside, too: torn, before tasks started, or by a rollback")
	cmd.Flags().BoolVar(&o.wide, "wide", false, "say which job wrote a checkpoint, too, and cut nothing")
	cmd.ValidArgsFunction = completeCheckpoints(0)
	o.Add(cmd)
	return cmd
}

func runLs(cmd *cobra.Command, o *lsOptions, ref string) error {
	all := []inspect.Checkpoint{}
	err := listed(cmd, ref, func(dirs []checkpoints.Listed) error {
		for _, d := range dirs {
			list := d.List
			retained, err := retain.List(cmd.Context(), d.Store)
			if err != nil {
				return err
			}
			aside, err := hdfsckpt.ListAside(cmd.Context(), d.Store)
			if err != nil {
				return err
			}
			if o.JSON() {
				all = append(all, inspect.Describe(d.Store.URI(), list, list)...)
				all = append(all, inspect.Describe(d.Store.URI(), retained, list)...)
				if o.all {
					all = append(all, inspect.DescribeAside(d.Store.URI(), aside)...)
				}
				continue
			}
			if err := writeCheckpoints(cmd, d.Directory, listing{list, retained, aside, o.all, o.wide}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !o.JSON() {
		return err
	}
	return cli.WriteJSON(cmd.OutOrStdout(), inspect.Listing{Checkpoints: all})
}

// listing is what ls shows of a directory.
type listing struct {
	list, retained []format.Checkpoint
	aside          []hdfsckpt.Aside
	all, wide      bool
}

func writeCheckpoints(cmd *cobra.Command, d checkpoints.Directory, l listing) error {
	list, retained := l.list, l.retained
	newest := format.NewestComplete(list)
	w := cmd.OutOrStdout()
	title := d.Store.URI()
	if d.Path != "" {
		title = d.Path + " -> " + title
	}
	if !l.all && len(l.aside) > 0 {
		defer fmt.Fprintf(w, "%d more were moved aside%s: ckpt ls --all lists them\n", len(l.aside), movedBy(l.aside))
	}
	if len(list)+len(retained) == 0 && (!l.all || len(l.aside) == 0) {
		names, n, err := hdfsckpt.NotUnderstood(cmd.Context(), d.Store)
		if err != nil {
			return err
		}
		if n == 0 {
			_, err = fmt.Fprintf(w, "%s: no checkpoint yet\n", title)
			return err
		}
		if n > len(names) {
			names = append(names, "...")
		}
		_, err = fmt.Fprintf(w, "%s: no checkpoint of a form that is known; there are %s\nSay how they are known to be complete: --checkpoint PATH=URI,format=plain with ,marker=FILE (the file that is written last) or ,quiet=30s (so long without a change)\n", title, strings.Join(names, ", "))
		return err
	}
	fmt.Fprintln(w, title)
	titles, width := []string{"STEP", "AGE", "SIZE", "SHARDS", "STATE", "NAME", "NOTE"}, cli.Columns()
	if l.wide {
		titles, width = append(titles, "WRITTEN BY"), 0
	}
	t := terminal.NewTable(titles...)
	t.Flexible = []string{"NAME", "NOTE"}
	row := func(c *format.Checkpoint, name, note string) {
		t.Add([]string{step(c), strings.TrimSpace(humanize.RelTime(c.Time, time.Now(), "", "from now")),
			humanize.IBytes(uint64(c.Size)), strconv.Itoa(c.Shards), string(c.State), name, note, writer(c)}[:len(titles)]...)
	}
	for i := range list {
		c := &list[i]
		var notes []string
		if c == newest {
			notes = append(notes, "newest complete")
		}
		if c.Current {
			notes = append(notes, "current")
		}
		if c.Why != "" {
			notes = append(notes, c.Why)
		}
		row(c, c.Name, strings.Join(notes, "; "))
	}
	for i := range retained {
		name, _ := retained[i].Original()
		where := "it is in " + retained[i].Name
		if retained[i].NamedStep() != format.NoStep {
			where = "ckpt rollback restores it"
		}
		row(&retained[i], name, "retained: the program removed or replaced it; "+where)
	}
	for _, a := range l.aside {
		if l.all {
			c := format.Checkpoint{Step: a.Step, Time: a.Moved, Size: a.Size, State: format.Torn}
			if a.Rollback != nil {
				c.Shards, c.State = a.Rollback.Shards, a.Rollback.State
			}
			row(&c, a.Name, "moved aside, to "+a.Where+": "+a.Why)
		}
	}
	return t.Write(w, width)
}

// movedBy says why checkpoints were moved aside.
func movedBy(aside []hdfsckpt.Aside) string {
	n := 0
	for _, a := range aside {
		if a.Rollback != nil {
			n++
		}
	}
	switch n {
	case 0:
		return ", torn, before tasks started"
	case len(aside):
		return " by a rollback"
	}
	return fmt.Sprintf(", %d by a rollback, the others, torn, before tasks started", n)
}

// writer says which job wrote a sealed checkpoint, and after which recovery.
func writer(c *format.Checkpoint) string {
	m := c.Manifest
	if m == nil || m.Job == "" {
		return "-"
	}
	text := fmt.Sprintf("%s, generation %d", m.Job, m.Generation)
	if m.After != "" {
		text += ", after " + m.After
	}
	return text
}

func step(c *format.Checkpoint) string {
	if c.Step == format.NoStep {
		return "-"
	}
	return strconv.FormatInt(c.Step, 10)
}
