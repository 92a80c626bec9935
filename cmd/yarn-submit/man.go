package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	if err := writePages(root, dir); err != nil {
		return fmt.Errorf("write the manual to %s: %w", dir, err)
	}
	return nil
}

// writePages writes the pages of a command and of those below it.
func writePages(cmd *cobra.Command, dir string) error {
	var page bytes.Buffer
	header := &doc.GenManHeader{Section: "1", Source: "yarn-submit " + version, Manual: "Holdfast"}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return err
	}
	// A switch is shown as one: --follow, not --follow[=false].
	text := bytes.ReplaceAll(page.Bytes(), []byte("[=false]"), nil)
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + header.Section
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
			if err := writePages(c, dir); err != nil {
				return err
			}
		}
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
