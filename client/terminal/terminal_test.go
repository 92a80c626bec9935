package terminal

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	const text = "a\tb\x1b[2J\u009b31mc\r\x07\x7f é 🙂 \u202eevil\u2069 \x9b \xff\n"
	const want = "a\tb[2J31mc é 🙂 evil \ufffd \ufffd\n"
	for size := 1; size < len(text); size++ { // however it comes
		var b strings.Builder
		w := Printable(&b)
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if got, err := w.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Fatalf("in pieces of %d it is %q, want %q", size, b.String(), want)
		}
		if Raw(w) != &b {
			t.Fatal("the writer beneath is another")
		}
	}
}

func TestEscapedJSONIsTheSame(t *testing.T) {
	const text = "\x1b\u009b31m\u202e\x7f é\n"
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	escaped := EscapeJSON(string(b))
	var back string
	if err := json.Unmarshal([]byte(escaped), &back); err != nil || back != text || strings.ContainsFunc(escaped, isControl) {
		t.Errorf("%q is read as %q, %v", escaped, back, err)
	}
}
