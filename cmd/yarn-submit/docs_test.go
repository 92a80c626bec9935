package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/cmd/yarn-submit/cli"
)

var update = flag.Bool("update", false, "write the table of docs/commands.md")

var commandsTable = regexp.MustCompile(`(?s)(<!-- commands \(make docs\) -->\n).*?(<!-- end of commands -->)`)

// TestDocsHaveTheCommands: the table of docs/commands.md is that of the commands.
func TestDocsHaveTheCommands(t *testing.T) {
	const name = "../../docs/commands.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| `yarn-submit ...` | | flags |\n|---|---|---|\n")
	writeCommands(&b, newRootCommand(nil))
	m := commandsTable.FindStringSubmatchIndex(string(text))
	if m == nil {
		t.Fatalf("%s has no place for the table", name)
	}
	want := string(text[:m[3]]) + b.String() + string(text[m[4]:])
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is not that of the commands; make docs writes it", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeCommands writes a row for each command that does something itself.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		if c.HasAvailableSubCommands() {
			writeCommands(b, c)
			continue
		}
		var flags []string
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if placeholder, _ := pflag.UnquoteUsage(f); !f.Hidden && f.Name != "output" && f.Name != "help" {
				flags = append(flags, strings.TrimSpace("`--"+f.Name+" "+placeholder)+"`")
			}
		})
		shown := cmp.Or(strings.Join(flags, ", "), "-")
		if c.Name() == "run" || c.Name() == "rerun" {
			shown = "[options.md](options.md)"
		}
		path := strings.TrimPrefix(c.Parent().CommandPath()+" "+c.Use, "yarn-submit ")
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", strings.ReplaceAll(path, "|", `\|`), c.Short, shown)
	}
}

// TestHelpFitsATerminal: no line of --help is longer than 80 columns.
func TestHelpFitsATerminal(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		var b strings.Builder
		cmd.InitDefaultHelpFlag()
		cmd.SetOut(&b)
		if err := cmd.Help(); err != nil {
			t.Error(err)
		}
		if cmd.Runnable() && !cmd.HasAvailableSubCommands() && strings.Count(cmd.Example, "yarn-submit ") < 2 {
			t.Errorf("%s --help has no two examples", cmd.CommandPath())
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if len(line) > cli.UsageWidth {
				t.Errorf("%s --help has a line of %d columns: %s", cmd.CommandPath(), len(line), line)
			}
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				visit(c)
			}
		}
	}
	visit(newRootCommand(nil))
}

// TestManual: it has a page for each command, and the flags of roles once.
func TestManual(t *testing.T) {
	p := newPlace(t)
	if _, errs, code := p.call("man", p.dir); code != 0 {
		t.Fatalf("man ended with %d: %s", code, errs)
	}
	for name, want := range map[string][]string{
		"yarn-submit-run.1":     {"--ROLE-memory", "memory of a task (default 2g; 1g for ps)", "--restarts\\fP=N", "--dry-run"},
		"yarn-submit-ckpt-ls.1": {"ckpt ls"},
	} {
		text, err := os.ReadFile(filepath.Join(p.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		contains(t, string(text), want...)
		if strings.Contains(string(text), "--worker-memory\\fP") {
			t.Errorf("%s has the flags of each role", name)
		}
	}
	if _, _, code := p.call("man", filepath.Join(p.dir, "none")); code != 2 {
		t.Errorf("man of no directory ended with %d", code)
	}
}
