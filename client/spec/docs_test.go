package spec

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/frameworks"
)

var update = flag.Bool("update", false, "write the tables of docs/options.md")

// TestDocsHaveTheOptions: the tables of docs/options.md are those that follow from the
// options, and every option is in one.
func TestDocsHaveTheOptions(t *testing.T) {
	const name = "../../docs/options.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := withTables(string(text))
	for _, f := range flagCells() {
		if !strings.Contains(want, f) {
			t.Errorf("%s has no table with %s", name, f)
		}
	}
	for line := range strings.Lines(want) {
		if strings.Count(line, "Default: ") > 1 || strings.Contains(line, "Default: ;") {
			t.Errorf("an option's default is told twice, or not well: %s", line)
		}
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the tables of %s are not those of the options; make docs writes them", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDocsHaveRolesAndPlaceholders: docs/options.md names every role that has flags of its own,
// and everything that is replaced in commands.
func TestDocsHaveRolesAndPlaceholders(t *testing.T) {
	text, err := os.ReadFile("../../docs/options.md")
	if err != nil {
		t.Fatal(err)
	}
	_, roles, _ := strings.Cut(string(text), "ROLE is ")
	roles, _, _ = strings.Cut(roles, "\n")
	if want := "`" + strings.Join(KnownRoles, "`, `") + "`, or the name of a role"; !strings.HasPrefix(roles, want) {
		t.Errorf("the roles are %q, want %q", roles, want)
	}
	_, replaced, _ := strings.Cut(string(text), "## In the command and in `env`")
	for _, name := range runtime.Placeholders() {
		if !strings.Contains(replaced, "`{"+name+"}`") {
			t.Errorf("{%s} is not among what is replaced", name)
		}
	}
}

// TestOptionsOfFrameworks: what package frameworks says of a framework's options is of
// options that there are.
func TestOptionsOfFrameworks(t *testing.T) {
	for _, f := range frameworks.All {
		for _, o := range f.Options {
			if findOption(jobOptions, strings.TrimPrefix(o.Flag, "--")) == nil {
				t.Errorf("%s has an option %s, which no job has", f.Name, o.Flag)
			}
		}
	}
}

var markers = regexp.MustCompile(`(?s)(<!-- options: ([^\n]*) \(make docs\) -->\n).*?(<!-- end of options -->)`)

// withTables puts the tables of options between the markers of a document.
func withTables(text string) string {
	return markers.ReplaceAllStringFunc(text, func(s string) string {
		m := markers.FindStringSubmatch(s)
		return m[1] + table(m[2]) + m[3]
	})
}

// table is a table, in Markdown, of the options under a heading.
func table(heading string) string {
	var b strings.Builder
	b.WriteString("| flag | in YAML | meaning |\n|---|---|---|\n")
	addRows(&b, heading, jobOptions, NewDraft(), func(name string) string { return "--" + name })
	addRows(&b, heading, roleOptions, &proto.RoleSpec{}, func(name string) string { return "--" + roleFlag("ROLE", name) })
	return b.String()
}

func addRows[T any](b *strings.Builder, heading string, table []option[T], of *T, flagName func(string) string) {
	for i := range table {
		o := &table[i]
		if o.name == "" || o.group != heading {
			continue
		}
		meaning := cmp.Or(o.doc, o.help)
		if def := o.defaults(); def != "" {
			meaning += ". Default: " + def
		}
		for _, f := range frameworks.All {
			for _, its := range f.Options {
				if its.Flag == "--"+o.name {
					meaning += ". Only with `" + f.Name + "`"
				}
			}
		}
		usage := strings.TrimSpace(flagName(o.name) + " " + cmp.Or(o.placeholder, o.kind(of).placeholder))
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", usage, o.yamlKey(), strings.ReplaceAll(meaning, "|", `\|`))
	}
}

func flagCells() []string {
	var all []string
	for i := range jobOptions {
		if o := &jobOptions[i]; o.name != "" {
			all = append(all, "`--"+o.name)
		}
	}
	for i := range roleOptions {
		if o := &roleOptions[i]; o.name != "" {
			all = append(all, "`--"+roleFlag("ROLE", o.name))
		}
	}
	return all
}
