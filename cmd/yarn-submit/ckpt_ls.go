package main

import (
	"fmt"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"holdfast/client"
	"holdfast/hdfsckpt"
)

func newCkptLsCommand() *cobra.Command {
	o := &output{}
	cmd := &cobra.Command{
		Use:   "ls URI|JOB",
		Short: "list checkpoints: step, age, size, shards, whether complete",
		Args:  between(1, 1, "URI|JOB"),
		RunE:  func(cmd *cobra.Command, args []string) error { return runCkptLs(cmd, o, args[0]) },
	}
	o.add(cmd)
	return cmd
}

func runCkptLs(cmd *cobra.Command, o *output, ref string) error {
	if err := o.check(); err != nil {
		return err
	}
	all := []client.Checkpoint{}
	err := listed(cmd, ref, func(d client.Directory, list []hdfsckpt.Checkpoint) error {
		kept, err := hdfsckpt.ListKept(cmd.Context(), d.Store)
		if err != nil {
			return err
		}
		kept = slices.DeleteFunc(kept, func(c hdfsckpt.Checkpoint) bool { return !c.Whole() })
		if o.json() {
			all = append(all, client.Describe(d.Store.URI(), list)...)
			all = append(all, client.Describe(d.Store.URI(), kept)...)
			return nil
		}
		return writeCheckpoints(cmd, d, list, kept)
	})
	if err != nil || !o.json() {
		return err
	}
	return writeJSON(cmd.OutOrStdout(), all)
}

func writeCheckpoints(cmd *cobra.Command, d client.Directory, list, kept []hdfsckpt.Checkpoint) error {
	newest := hdfsckpt.NewestComplete(list)
	w := cmd.OutOrStdout()
	title := d.Store.URI()
	if d.Path != "" {
		title = d.Path + " -> " + title
	}
	if len(list)+len(kept) == 0 {
		_, err := fmt.Fprintf(w, "%s: no checkpoint yet\n", title)
		return err
	}
	fmt.Fprintln(w, title)
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "STEP\tAGE\tSIZE\tSHARDS\tSTATE\tNAME\tWRITTEN BY\tNOTE")
	row := func(c *hdfsckpt.Checkpoint, name, note string) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", step(c), humanize.RelTime(c.Time, time.Now(), "", "from now"),
			humanize.IBytes(uint64(c.Size)), c.Shards, c.State, name, writer(c), note)
	}
	for i := range list {
		c := &list[i]
		note := c.Why
		if c == newest {
			note = "newest complete"
		}
		if c.Current {
			if note != "" {
				note += "; "
			}
			note += "current"
		}
		row(c, c.Name, note)
	}
	for i := range kept {
		name, _ := hdfsckpt.FormerName(kept[i])
		row(&kept[i], name, "kept: the program removed or replaced it; ckpt rollback brings it back")
	}
	return t.Flush()
}

// writer says which job wrote a sealed checkpoint, and after which recovery.
func writer(c *hdfsckpt.Checkpoint) string {
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

func step(c *hdfsckpt.Checkpoint) string {
	if c.Step == hdfsckpt.NoStep {
		return "-"
	}
	return strconv.FormatInt(c.Step, 10)
}
