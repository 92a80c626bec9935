package pty

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestScreen: a terminal of eight columns and four lines.
func TestScreen(t *testing.T) {
	for text, want := range map[string][]string{
		"one\r\ntwo\r\n":                                     {"one", "two"},
		"50%\r100%\r\n":                                      {"100%"},
		"$ list\r\x1b[C\x1b[C\x1b[K":                         {"$"},
		"a\r\nb\r\nc\r\nd\r\ne":                              {"b", "c", "d", "e"},
		"longer than eight":                                  {"longer t", "han eigh", "t"},
		"first\r\nsecond\r\x1b[K\x1b[1A\x1b[Kthird":          {"third"},
		"x\x1b[?1049h\x1b[?25l\x1b[Htop\x1b[K\r\nrest\x1b[J": {"top", "rest"},
		"x\x1b[?1049h\x1b[Htop\x1b[?1049l\r\ny":              {"x", "y"},
		"\x1b[36m[w-0]\x1b[0m é":                             {"[w-0] é"},
		"\x1b[Hone\r\ntwo\x1b[Htwo\x1b[K\r\n\x1b[K\x1b[J":    {"two"},
		"\x1b[4;8Hx":                                         {"", "", "", "       x"},
	} {
		if got := newScreen(8, 4, text).lines(); !slices.Equal(got, want) {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// TestCommand: what is pressed arrives, a command sees a terminal of its size, and its exit code
// is told.
func TestCommand(t *testing.T) {
	x := Start(t, exec.Command("sh", "-c", `stty size; read line; echo "got $line"; exit 3`), 80, 24)
	x.See("24 80", 1)
	x.Press("this\n")
	if code := x.Code(); code != 3 {
		t.Errorf("it ended with %d", code)
	}
	if want := []string{"24 80", "this", "got this"}; !slices.Equal(x.Lines(), want) || !slices.Equal(x.Screen(), want) {
		t.Errorf("the terminal shows %q", x.Lines())
	}
	if !strings.HasSuffix(x.Shown(), "got this\r\n") {
		t.Errorf("written was %q", x.Shown())
	}
}
