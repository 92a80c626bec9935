package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestTopIn80Columns: all keys can be read there, a task's note says something, and no name of a
// node is cut to what could be any.
func TestTopIn80Columns(t *testing.T) {
	s := &proto.JobStatus{Id: "local-20261127-050000-abcd", Name: "mnist", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000}
	for i := range 3 {
		s.Tasks = append(s.Tasks, &proto.TaskStatus{
			Task: fmt.Sprintf("worker-%d", i), State: proto.TaskState_TASK_STATE_RUNNING, Step: 12345, CpuCores: 1.5, Vcores: 2,
			RssBytes: 300 << 20, MemoryLimitBytes: 2 << 30, Node: "localhost.localdomain", Line: "step 12345, loss 0.1234", LineAtUnixMs: 60481,
		})
	}
	v := &topView{status: s, order: "name"}
	shown := func() string {
		var out strings.Builder
		v.draw(&out, 80, 24, time.UnixMilli(61000))
		return out.String()
	}
	text := shown()
	if strings.Contains(text, "localho…") || !strings.Contains(text, "519ms: step 12345, loss") {
		t.Errorf("the table is\n%s", text)
	}
	if !strings.Contains(text, "q quit  jk move  l log  i losses  sort n c m s t w g  ? keys"+restOfLine) {
		t.Errorf("the last line has no room for the keys:\n%s", text)
	}
	if !v.press("?") {
		t.Fatal("? leaves")
	}
	text = shown()
	for _, k := range TopKeys() {
		if !strings.Contains(text, k.Keys) || !strings.Contains(text, k.Does+restOfLine) {
			t.Errorf("after ? there is no %q: %q in\n%s", k.Keys, k.Does, text)
		}
	}
	if !v.press("q") || v.showing != "" {
		t.Error("q does not go back to the tasks")
	}
}

// TestNoLineOfTopIsTooWide: a line that takes more columns than the terminal has goes on in the next, and the
// first line of the screen is gone.
func TestNoLineOfTopIsTooWide(t *testing.T) {
	const width = 40
	odd := "🚀損失\tat org.example.Loss.of(Loss.java:12)"
	s := &proto.JobStatus{Id: "local-1", Name: "job", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000, Why: odd + odd, Tasks: []*proto.TaskStatus{
		{Task: "worker-0", Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING, Line: odd + odd, LineAtUnixMs: 58000},
	}}
	v := &topView{status: s, order: "name", selected: "worker-0", log: []string{odd + odd, strings.Repeat(odd[:4], width)}}
	check := func(what, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			line = strings.TrimRight(strings.ReplaceAll(strings.ReplaceAll(line, restOfLine, ""), restBelow, ""), "\r\n")
			line = strings.TrimPrefix(line, toTop)
			if n := len([]rune(line)) + strings.Count(line, "🚀") + strings.Count(line, "損") + strings.Count(line, "失"); n > width || strings.Contains(line, "\t") {
				t.Errorf("a line of %s takes %d of %d columns: %q", what, n, width, line)
			}
		}
	}
	for _, v.showing = range []string{"", "log"} {
		var out strings.Builder
		v.draw(&out, width, 24, time.UnixMilli(61000))
		check("top", out.String())
	}
	var out strings.Builder
	NewProgress(&out, width).Show(s)
	check("the progress", out.String())
}

// The screen of top has the terminal's size at most, sorts, and scrolls to what is chosen.
func TestTopScreen(t *testing.T) {
	s := &proto.JobStatus{Id: "application_1795571056298_0001", Name: "mnist", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1000, Step: 7}
	for i := range 40 {
		s.Tasks = append(s.Tasks, &proto.TaskStatus{
			Task: fmt.Sprintf("worker-%d", i), Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING, RssBytes: int64(i) << 20, Node: "node-with-a-long-name.example.org",
			Why: "a note that is longer than the line", Attempt: 1,
		})
	}
	s.Tasks[0].Why, s.Tasks[0].Line, s.Tasks[0].LineAtUnixMs = "", "step 7", 58000
	s.Tasks[0].CpuCores, s.Tasks[0].Vcores, s.Tasks[0].RssBytes, s.Tasks[0].MemoryLimitBytes = 1.5, 2, 1<<20, 500<<20
	s.Step, s.TotalSteps, s.StepsPerSecond = 7, 27, 2
	s.Incidents = []*proto.Incident{{Task: "worker-3", Cause: "its node was lost", AtUnixMs: 2000, RecoveredUnixMs: 3000, RecoveredAfterMs: 1000}}
	v := &topView{status: s, order: "name"}
	show := func(want ...string) {
		t.Helper()
		screen := v.screen(80, 24, time.UnixMilli(61000))
		var out strings.Builder
		v.draw(&out, 80, 24, time.UnixMilli(61000))
		text := strings.Join(screen, "\n")
		if len(screen) != 24 || strings.Count(out.String(), "\n") != 23 {
			t.Errorf("the screen has %d lines:\n%s", len(screen), text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in:\n%s", w, text)
			}
		}
	}
	show("mnist", "running 1m0s | step 7/27, 2/s, 10s left", "worker 40/40", "   worker-0 ", "1.5/2  1.0/500 MiB", "3s: step 7")
	s.Generations = []*proto.Generation{{Number: 1, Tasks: 39, Of: 40, Least: 20, Parked: []string{"worker-9"}}}
	s.Tasks[9].State, s.Tasks[9].ParkedSinceUnixMs, s.Tasks[9].ParkedCause = proto.TaskState_TASK_STATE_PARKED, 50000, "node lost"
	show("works with 39 of 40 tasks (at least 20): worker-9 parked since " + time.UnixMilli(50000).Format("15:04:05"))
	s.Generations, s.Tasks[9].State = nil, proto.TaskState_TASK_STATE_RUNNING
	s.Tasks[9].ParkedSinceUnixMs = 0
	s.Tasks[2].ReceivedBytesPerSecond, s.Tasks[2].SentBytesPerSecond = 12<<20, 3<<10
	s.Tasks[2].Gpus, s.Tasks[2].GpuPercent, s.Tasks[2].GpuMemoryBytes, s.Tasks[2].GpuMemoryLimitBytes = 2, 87.4, 60<<30, 160<<30
	show("GPU", "87% 60/160 GiB")
	if wide := strings.Join(v.screen(120, 24, time.UnixMilli(61000)), "\n"); !strings.Contains(wide, "12 MiB/3.0 KiB") {
		t.Errorf("a wide terminal does not have the network:\n%s", wide)
	}
	for _, key := range []string{"w", "g"} {
		if v.press(key); v.sorted()[0].Task != "worker-2" {
			t.Errorf("the key %s puts %s first", key, v.sorted()[0].Task)
		}
	}
	v.press("m")
	show("   worker-39 ")
	v.press("m")
	v.press("n")
	for range 31 {
		v.press("down")
	}
	show(">  worker-30 ")
	v.selected = "worker-3"
	v.press("i")
	show("Losses of worker-3", "its node was lost", "1.0 s", "q back")
	if !v.press("q") || v.showing != "" {
		t.Error("q does not go back")
	}
	v.press("l")
	for i := range 50 {
		v.log = append(v.log, fmt.Sprintf("step %d\rstep %d", i, 1000+i))
	}
	show("What worker-3 wrote last", "step 1049")
	v.press("escape")
	if v.press("q") {
		t.Error("q does not leave")
	}
}
