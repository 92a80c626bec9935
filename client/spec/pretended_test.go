package spec

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"holdfast/proto"
)

// pretended and pretendedOfRoles are options as new ones would be written: these rows.
// A real one sets a field of its own.
var (
	pretended = option[Draft]{
		name: "pretend", group: groupLosses, def: "mildly", help: "how much to pretend",
		kind: func(d *Draft) kind { return choice(&d.Job.ShellPath, []string{"mildly", "wildly"}) },
	}
	pretendedOfRoles = option[proto.RoleSpec]{
		name: "pretences", group: groupRoles, help: "pretences of a task",
		kind: func(r *proto.RoleSpec) kind { return number(&r.Gpus, 2, 5) },
	}
)

// TestOneRowAddsAnOption: what there is of an option follows from its row.
func TestOneRowAddsAnOption(t *testing.T) {
	jobs, roles := jobOptions, roleOptions
	jobOptions, roleOptions = append(slices.Clone(jobs), pretended), append(slices.Clone(roles), pretendedOfRoles)
	defer func() { jobOptions, roleOptions = jobs, roles }()

	cmd := &cobra.Command{Use: "run", Short: "run", Run: func(*cobra.Command, []string) {}}
	flags := AddFlags(cmd, Scan(nil), nil)
	if err := cmd.ParseFlags([]string{"--worker", "1", "--pretend", "wildly", "--worker-pretences", "3", "--", "true"}); err != nil {
		t.Fatal(err)
	}
	draft, err := flags.Draft(cmd.Flags().Args())
	if err != nil || draft.Job.ShellPath != "wildly" || draft.Job.Roles[0].Gpus != 3 {
		t.Fatalf("the flags make %v, %v", draft.Job, err)
	}
	if d := NewDraft(); d.Job.ShellPath != "mildly" {
		t.Errorf("the default is %q", d.Job.ShellPath)
	}

	made, err := draft.Spec()
	if err != nil {
		t.Fatal(err)
	}
	printed, err := draft.YAML(made)
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "--dry-run", string(printed), "pretend: wildly", "pretences: 3")
	again, err := ParseDraft(printed, "")
	if err != nil || again.Job.ShellPath != "wildly" || again.Job.Roles[0].Gpus != 3 {
		t.Errorf("YAML makes %v, %v", again.Job, err)
	}

	shown := SettingsOf(made)
	if !slices.Contains(shown.Job, Setting{Name: "pretend", Group: groupLosses, Value: "wildly"}) || !slices.Contains(shown.Roles[0], Setting{Name: "pretences", Group: groupRoles, Value: "3"}) {
		t.Errorf("the job's page shows %v", shown)
	}

	again.Role("worker").Gpus = 6
	if _, err := again.Spec(); err == nil || !strings.Contains(err.Error(), "--worker-pretences is 6: write a number from 2 to 5") {
		t.Errorf("the check: %v", err)
	}

	help := ""
	for _, g := range flags.Groups() {
		help += g.Flags.FlagUsages()
	}
	contains(t, "--help", help, "--pretend NAME", "how much to pretend (default mildly)", "--ROLE-pretences N")

	var offered bytes.Buffer
	root, fresh := &cobra.Command{Use: "yarn-submit"}, &cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}}
	AddFlags(fresh, Scan(nil), nil)
	root.AddCommand(fresh)
	root.SetOut(&offered)
	root.SetErr(&offered)
	for _, args := range [][]string{{"run", "--pretend", ""}, {"run", "--pret"}, {"run", "--worker-pret"}} {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
		if err := root.Execute(); err != nil {
			t.Error(err)
		}
	}
	contains(t, "completion", offered.String(), "mildly\nwildly\n", "--pretend\t", "--worker-pretences\t")

	contains(t, "docs/options.md", table(groupLosses)+table(groupRoles),
		"| `--pretend NAME` | `pretend` | how much to pretend. Default: mildly |", "| `--ROLE-pretences N` | `pretences` | pretences of a task |")

	var manual bytes.Buffer
	SummarizeRoles(cmd.Flags())
	if err := doc.GenMan(cmd, nil, &manual); err != nil {
		t.Fatal(err)
	}
	contains(t, "the manual", manual.String(), `\fB--pretend\fP`, `\fB--ROLE-pretences\fP`)
}

func contains(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s has no %q:\n%s", what, w, text)
		}
	}
}
