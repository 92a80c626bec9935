package client

import "testing"

func TestDidYouMean(t *testing.T) {
	commands := []string{"run", "status", "logs", "kill", "list", "ckpt", "doctor", "version"}
	for _, c := range []struct {
		word  string
		known []string
		want  string
	}{
		{"stauts", commands, "; did you mean status?"},
		{"Lsit", commands, "; did you mean list?"},
		{"docter", commands, "; did you mean doctor?"},
		{"submit", commands, ""},
		{"x", commands, ""},
		{"", commands, ""},
		{"wroker", []string{"worker", "worker-min"}, "; did you mean worker?"},
		{"memroy", []string{"memory", "memory-max"}, "; did you mean memory?"},
		{"ux-helo", []string{"ux-hello", "ux-hello", "ux-help"}, "; did you mean ux-hello or ux-help?"},
		{"job-7", []string{"job-1", "job-2", "job-3", "job-4"}, ""}, // like all of them is like none
	} {
		if got := DidYouMean(c.word, c.known); got != c.want {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
}
