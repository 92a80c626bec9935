package proctree

import "testing"

func TestParseStat(t *testing.T) {
	for text, want := range map[string]stat{
		"17 (sh) S 3 17 17 0":             {'S', 3},
		"17 (a) R 1 (b) Z 4 17":           {'Z', 4},
		"17 (new\nline) S 5 17 17 0 -1 4": {'S', 5},
	} {
		if got, ok := parseStat([]byte(text)); !ok || got != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "17 (sh", "17 (sh)", "17 (sh) S", "17 (sh) S x", "17 (sh) SS 1", "17 (sh) S -1"} {
		if got, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("17 (sh) S 3 17 17 0"))
	f.Add([]byte("17 (a) R 1 (b) Z 4 17"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := parseStat(b); ok && s.parent < 0 {
			t.Fatalf("%q has parent %d", b, s.parent)
		}
	})
}
