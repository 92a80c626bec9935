package inspect_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/inspect"
)

// fieldsOf returns the names that the fields of a type have in JSON, those of types in it
// included, but for checkpoints, which docs/checkpoints.md describes once.
func fieldsOf(t reflect.Type) (names []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.PkgPath() == "time" {
		return nil
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		if f.Type != reflect.TypeFor[inspect.Checkpoint]() && f.Type != reflect.TypeFor[[]inspect.Checkpoint]() {
			names = append(names, fieldsOf(f.Type)...)
		}
	}
	return names
}

// TestDocsHaveTheJSONOfCheckpoints: docs/checkpoints.md has every field of what commands and pages
// say of checkpoints, and no field of a checkpoint that is not there.
func TestDocsHaveTheJSONOfCheckpoints(t *testing.T) {
	b, err := os.ReadFile("../../docs/checkpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n## JSON\n")
	if !ok {
		t.Fatal("docs/checkpoints.md has no section of JSON")
	}
	fields, commands, ok := strings.Cut(text, "| command | prints |")
	if !ok {
		t.Fatal("docs/checkpoints.md does not say what commands print")
	}
	word := regexp.MustCompile("`([a-z0-9_]+)`")
	var documented []string
	for _, line := range strings.Split(fields, "\n") {
		first, _, isRow := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !isRow {
			continue
		}
		for _, m := range word.FindAllStringSubmatch(first, -1) {
			documented = append(documented, m[1])
		}
	}
	real := fieldsOf(reflect.TypeFor[inspect.Checkpoint]())
	slices.Sort(real)
	slices.Sort(documented)
	if !slices.Equal(real, documented) {
		t.Errorf("a checkpoint has the fields %v, and docs/checkpoints.md has %v", real, documented)
	}
	for command, of := range map[string]reflect.Type{
		"ls": reflect.TypeFor[inspect.Listing](), "show": reflect.TypeFor[inspect.Details](), "verify": reflect.TypeFor[inspect.Verified](), "cat": reflect.TypeFor[inspect.Values](),
		"diff": reflect.TypeFor[inspect.Change](), "prune": reflect.TypeFor[inspect.Pruning](), "rollback": reflect.TypeFor[inspect.Rollback](),
	} {
		_, row, found := strings.Cut(commands, "\n| `"+command+"` |")
		row, _, _ = strings.Cut(row, "\n")
		if !found {
			t.Errorf("docs/checkpoints.md does not say what %s prints", command)
		}
		for _, name := range fieldsOf(of) {
			if !strings.Contains(row, "`"+name+"`") {
				t.Errorf("docs/checkpoints.md does not say that %s prints %s: %s", command, name, row)
			}
		}
	}
}
