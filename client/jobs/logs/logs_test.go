package logs

import (
	"fmt"
	"strings"
	"testing"
)

func TestTaskOrder(t *testing.T) {
	if !taskLess("worker-2", "worker-10") || taskLess("worker-10", "worker-2") || !taskLess("ps-1", "worker-0") {
		t.Error("tasks are in a wrong order")
	}
}

// The last lines of a log are found wherever the pieces in which it is read end.
func TestTail(t *testing.T) {
	long := strings.Repeat("x", chunk-3)
	for _, text := range []string{"", "a", "a\n", "a\nb", "a\nb\n", "\n\n", "a\n" + long + "\nb\nc\n", long + long + "\n" + long, long + "\nab\n" + long + "\n"} {
		whole := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		for n := range 4 {
			at, err := tailOffset(strings.NewReader(text), int64(len(text)), n)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.Join(whole[max(0, len(whole)-n):], "\n")
			if got := strings.TrimSuffix(text[at:], "\n"); got != want && n > 0 || n == 0 && text[at:] != "" {
				t.Errorf("the last %d lines of %d bytes are %d bytes, want %d", n, len(text), len(got), len(want))
			}
		}
	}
}

func TestLastLines(t *testing.T) {
	l := lastLines{most: 2}
	for i := range 5 {
		l.add(Line{Text: fmt.Sprint(i)})
	}
	if got := fmt.Sprint(l.list[0].Text, " ", l.list[1].Text); len(l.list) != 2 || got != "3 4" {
		t.Errorf("kept are %s", got)
	}
}

// The previous attempt is the one before the last, of which there may be several logs.
func TestPrevious(t *testing.T) {
	list := func(attempts ...int) (of []*source) {
		for _, a := range attempts {
			of = append(of, &source{attempt: a})
		}
		return of
	}
	for _, c := range []struct{ all, want []*source }{
		{nil, nil}, {list(0), nil}, {list(0, 0), nil}, {list(0, 1), list(0)}, {list(0, 0, 1, 1, 2, 2), list(1, 1)}, {list(0, 0, 2), list(0, 0)},
	} {
		if got := previous(c.all); len(got) != len(c.want) || len(got) > 0 && got[0].attempt != c.want[0].attempt {
			t.Errorf("of %d logs, %d are of the previous attempt, want %d", len(c.all), len(got), len(c.want))
		}
	}
}
