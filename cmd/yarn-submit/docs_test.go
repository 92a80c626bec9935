package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client/jobs"
	"holdfast/client/spec"
	"holdfast/client/submit"
	"holdfast/cmd/yarn-submit/ckpt"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/doctor/check"
	"holdfast/hdfsckpt/inspect"
	"holdfast/runtime"
)

var update = flag.Bool("update", false, "write the table of docs/commands.md")

var (
	commandsTable = regexp.MustCompile(`(?s)(<!-- commands \(make docs\) -->\n).*?(<!-- end of commands -->)`)
	keysTable     = regexp.MustCompile(`(?s)(<!-- keys of top \(make docs\) -->\n).*?(<!-- end of keys -->)`)
)

// TestDocsHaveTheCommands: the tables of docs/commands.md are those of the commands, and of the
// keys of top.
func TestDocsHaveTheCommands(t *testing.T) {
	const name = "../../docs/commands.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| `yarn-submit ...` | | flags |\n|---|---|---|\n")
	writeCommands(&b, newRootCommand(nil))
	keys := "| key | |\n|---|---|\n"
	for _, k := range jobs.TopKeys() {
		keys += fmt.Sprintf("| `%s` | %s |\n", k.Keys, k.Does)
	}
	want := string(text)
	for _, table := range []struct {
		place *regexp.Regexp
		rows  string
	}{{commandsTable, b.String()}, {keysTable, keys}} {
		m := table.place.FindStringSubmatchIndex(want)
		if m == nil {
			t.Fatalf("%s has no place %s", name, table.place)
		}
		want = want[:m[3]] + table.rows + want[m[4]:]
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s are not those of the commands and keys; make docs writes them", name)
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

// TestHelpIsGrouped: each command that --help shows is under a heading, and so is each flag of
// run.
func TestHelpIsGrouped(t *testing.T) {
	root := newRootCommand(nil)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() && c.GroupID == "" && c.Name() != "help" {
			t.Errorf("%s is in no group", c.Name())
		}
	}
	p := newPlace(t)
	help, _, _ := p.call("--help")
	if order := []int{strings.Index(help, "\nJobs:\n"), strings.Index(help, "\n  run "), strings.Index(help, "\nWhat a job does:\n"), strings.Index(help, "\n  top "), strings.Index(help, "\nCheckpoints:\n"), strings.Index(help, "\n  ckpt ")}; order[0] < 0 || !slices.IsSorted(order) {
		t.Errorf("--help is not in groups (%v):\n%s", order, help)
	}
	help, _, _ = p.call("run", "--help")
	for _, name := range append(runtime.Placeholders(), "ROLE_hosts", "ps_hosts") {
		contains(t, help, "{"+name+"}")
	}
	_, roles, _ := strings.Cut(help, "ROLE is")
	contains(t, strings.Join(strings.Fields(roles), " "), strings.Join(spec.KnownRoles, ", ")+", or a role")
	if order := []int{strings.Index(help, "\nRoles:\n"), strings.Index(help, "--ROLE-memory"), strings.Index(help, "\nThis command:\n"), strings.Index(help, "--detach")}; order[0] < 0 || !slices.IsSorted(order) {
		t.Errorf("run --help is not in groups (%v):\n%s", order, help)
	}
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

// shape returns the names that a value has in JSON, of all its depths.
func shape(of reflect.Type) []string {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		return shape(of.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var names []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		if name != "-" && (f.IsExported() && of.PkgPath() != "time" || f.Anonymous) {
			names = append(names, shape(f.Type)...)
		}
	}
	return names
}

// TestDocsHaveTheJSONOfCommands: each command that has --output json is in the table of
// docs/json.md, and each name that an answer has which is no message stands in its row there, or,
// of checkpoints, in docs/checkpoints.md. (Messages are compared in package proto.)
func TestDocsHaveTheJSONOfCommands(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	answers := read("json.md")
	answers, _, _ = strings.Cut(answers, "## Errors")
	rowOf := func(command string) string {
		for line := range strings.Lines(answers) {
			cells := strings.SplitN(line, " | ", 2)
			if len(cells) == 2 && regexp.MustCompile("(?:^\\| |, )`"+command+"(?: |`)").MatchString(cells[0]) {
				return cells[1]
			}
		}
		return ""
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		name, _, _ := strings.Cut(strings.TrimPrefix(cmd.CommandPath(), "yarn-submit "), " ")
		cmd.InitDefaultHelpFlag()
		if cmd.IsAvailableCommand() && cmd.Flags().Lookup("output") != nil && rowOf(name) == "" && name != "rerun" {
			t.Errorf("docs/json.md does not say what %s answers", cmd.CommandPath())
		}
		if without := strings.Contains(answers, "`"+name+"`, ") || strings.Contains(answers, "`"+name+"` have no"); cmd.Runnable() && !cmd.HasAvailableSubCommands() && cmd.IsAvailableCommand() && cmd.Flags().Lookup("output") == nil && !without {
			t.Errorf("%s has no --output, and docs/json.md does not say so", cmd.CommandPath())
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				visit(c)
			}
		}
	}
	visit(newRootCommand(nil))
	for command, of := range map[string]any{
		"stacks": jobs.TaskStacks{}, "gc": submit.Collected{}, "doctor": check.Finding{},
	} {
		for _, name := range shape(reflect.TypeOf(of)) {
			if !strings.Contains(rowOf(command), "`"+name+"`") {
				t.Errorf("the row of %s in docs/json.md has no `%s`: %s", command, name, rowOf(command))
			}
		}
	}
	for command, names := range map[string][]string{"rm": {"removed"}, "kill": {"had_ended"}, "gc": {"directories"}, "describe": {"task", "incidents", "events"}, "stacks": {"tasks"}, "doctor": {"findings"}, "version": {"version", "go", "platform", "revision"}, "ui": {"url"}, "run --detach": {"id", "name", "directory"}} {
		for _, name := range names {
			if !strings.Contains(rowOf(command), "`"+name+"`") {
				t.Errorf("the row of %s in docs/json.md has no `%s`: %s", command, name, rowOf(command))
			}
		}
	}
	_, checkpoints, _ := strings.Cut(read("checkpoints.md"), "## JSON")
	for _, of := range []any{
		inspect.Listing{}, inspect.Details{}, inspect.Verified{}, inspect.Values{}, inspect.Change{}, ckpt.Got{}, inspect.Pruning{}, inspect.Rollback{},
	} {
		names := shape(reflect.TypeOf(of))
		if len(names) == 0 {
			t.Errorf("%T has no JSON", of)
		}
		for _, name := range names {
			if !strings.Contains(checkpoints, "`"+name+"`") {
				t.Errorf("docs/checkpoints.md does not have `%s`, which is in %T", name, of)
			}
		}
	}
}
