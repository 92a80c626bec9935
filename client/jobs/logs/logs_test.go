package logs

import (
	"bytes"
	"fmt"
	"path"
	"runtime"
	"strings"
	"testing"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestALongLine: what a progress bar has written for days is one line. To read it takes time and
// memory by its length, and by no more than that; what comes after it is found.
func TestALongLine(t *testing.T) {
	const id, size = "local-test", 32 << 20
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	log := path.Join(jobs.Directory(id), proto.LogsDir, "worker-0", "0.log")
	bar := bytes.Repeat([]byte("50%|###\r"), size/8)
	if err = store.MkdirAll(t.Context(), home, path.Dir(log), 0o700); err == nil {
		err = store.WriteFile(t.Context(), home, log, append(bar, "\nafter\r\n\nlast"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	j := jobs.OnMachine(home, id)
	defer j.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var lengths []int
	_, err = Read(t.Context(), j, Options{Attempt: All, Tail: All}, func(l Line) error {
		lengths = append(lengths, len(l.Text))
		return nil
	})
	runtime.ReadMemStats(&after)
	if err != nil || fmt.Sprint(lengths) != fmt.Sprint([]int{size - 1, 5, 0, 4}) {
		t.Errorf("the lines have %v bytes, %v", lengths, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 10*size {
		t.Errorf("reading %d MiB took %d MiB in all", size>>20, took>>20)
	}
}

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
