package acl

import (
	"testing"

	"holdfast/test/bound"
)

func FuzzParse(f *testing.F) {
	f.Add("alice,bob staff")
	f.Add(" staff")
	f.Add(" * ")
	f.Fuzz(func(t *testing.T, text string) {
		defer bound.Memory(t, len(text), 100)()
		l, err := Parse(text)
		if err == nil && l.Allows("", func(string) []string { return []string{""} }) && !l.All {
			t.Errorf("%q lets in who has no name: %+v", text, l)
		}
	})
}
