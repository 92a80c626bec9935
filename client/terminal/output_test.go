package terminal

import "testing"

func TestShown(t *testing.T) {
	for _, c := range []struct {
		line    string
		colours bool
		want    string
	}{
		{"plain text", true, "plain text"},
		{"10%|#  |\r50%|## |\r100%|###|\r", true, "100%|###|"},
		{"\x1b[2J\x1b[Hcleared\x1b]0;title\x07", true, "cleared"},
		{"\x1b[32mgreen\x1b[0m", true, "\x1b[32mgreen\x1b[0m\x1b[0m"},
		{"\x1b[32mgreen\x1b[0m", false, "green"},
		{"\x1b[6nasks\x1b", true, "asks"},
		{"\u009b2Jbell\x07", true, "2Jbell"},
		{"\x9b2Jin eight bits", true, "\uFFFD2Jin eight bits"},
		{"\x9b2J and a bell\x07", true, "\uFFFD2J and a bell"},
	} {
		if got := Shown(c.line, c.colours); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.line, got, c.want)
		}
	}
}
