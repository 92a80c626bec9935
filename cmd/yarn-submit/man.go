package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"holdfast/client"
	"holdfast/client/spec"
	"holdfast/cmd/yarn-submit/cli"
)

// newManCommand is for those who package the program.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "write the manual, a page for each command, into a directory", Hidden: true,
		Args: cli.Between(1, 1, "DIR"),
		RunE: func(_ *cobra.Command, args []string) error { return runMan(args[0]) },
	}
}

func runMan(dir string) error {
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
		return client.Usagef("%s is no directory: make it first", dir)
	}
	root := newRootCommand(nil)
	root.DisableAutoGenTag = true
	if err := prepareForManual(root); err != nil {
		return err
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "yarn-submit " + version, Manual: "Holdfast"}, dir); err != nil {
		return fmt.Errorf("write the manual to %s: %w", dir, err)
	}
	return nil
}

// prepareForManual shows the flags of roles once, and has the manual show what a flag
// takes, and the default beside its meaning.
func prepareForManual(root *cobra.Command) error {
	run, _, err := root.Find([]string{"run"})
	if err != nil {
		return err
	}
	spec.SummarizeRoles(run.Flags())
	show := func(f *pflag.Flag) {
		placeholder, usage := pflag.UnquoteUsage(f)
		if placeholder == "" {
			return // a switch
		}
		f.Usage = usage
		if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "[]" {
			f.Usage += " (default " + f.DefValue + ")"
		}
		f.DefValue, f.Value = placeholder, shownValue{f.Value, placeholder}
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalNonPersistentFlags().VisitAll(show)
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
	return nil
}

// shownValue is a flag's value whose placeholder the manual shows.
type shownValue struct {
	pflag.Value
	placeholder string
}

func (v shownValue) Type() string { return v.placeholder }
