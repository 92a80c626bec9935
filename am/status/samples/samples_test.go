package samples_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/am/status/samples"
	"holdfast/proto"
)

var begin = time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)

// all returns what was measured.
func all(s *samples.Samples) *proto.JobSamples {
	return s.Select(&proto.SamplesRequest{Tasks: []string{proto.AllTasks}})
}

func find(t *testing.T, list []*proto.Series, name, role, task string) *proto.Series {
	t.Helper()
	for _, s := range list {
		if s.Name == name && s.Role == role && s.Task == task {
			return s
		}
	}
	t.Fatalf("there is no series %s of %s %s", name, role, task)
	return nil
}

// TestSpikesAreKept: however long a job runs, the least and the greatest value remain.
func TestSpikesAreKept(t *testing.T) {
	s := samples.New("j", begin, []samples.Task{{Name: "worker-0", Role: "worker"}})
	const seconds = 3 * 24 * 3600
	for i := range seconds {
		at := begin.Add(time.Duration(i) * time.Second)
		loss := 1.0
		if i == 5000 {
			loss = 100
		}
		s.AddStep(at, int64(i), 2)
		s.AddScalars(at, "worker-0", []*proto.Scalar{{Name: "loss", Value: loss, Min: loss, Mean: loss, Max: loss}})
	}
	got := all(s)
	loss := find(t, got.Series, "loss", "worker", "")
	at := int64(5000_000) / loss.IntervalMs
	if loss.Max[at] != 100 || loss.Min[at] != 1 || loss.Mean[at] < 1 || loss.Mean[at] > 2 || loss.StartUnixMs != begin.UnixMilli() {
		t.Errorf("the spike became %v, %v, %v", loss.Min[at], loss.Mean[at], loss.Max[at])
	}
	if n := len(loss.Mean); n < 300 || n > 720 || int64(n)*loss.IntervalMs < seconds*1000 || int64(n-1)*loss.IntervalMs > seconds*1000 {
		t.Errorf("%d points of %d ms", n, loss.IntervalMs)
	}
	step := find(t, got.Recent, proto.SeriesStep, "", "")
	end := step.StartUnixMs + int64(len(step.Mean))*step.IntervalMs
	if last := begin.Add(seconds * time.Second).UnixMilli(); end < last || end > last+step.IntervalMs || step.Max[len(step.Max)-1] != seconds-1 || step.IntervalMs > 5000 {
		t.Errorf("the last steps end at %d with %v", end-last, step.Max[len(step.Max)-1])
	}
	reduced := s.Select(&proto.SamplesRequest{Names: []string{"loss"}, Points: 10})
	r := find(t, reduced.Series, "loss", "worker", "")
	if len(reduced.Series) != 1 || len(r.Mean) > 10 || r.Max[5000_000/r.IntervalMs] != 100 {
		t.Errorf("reduced: %v", reduced)
	}
	if again := proto.SelectSamples(got, &proto.SamplesRequest{Names: []string{"loss"}, Points: 10}); !pb.Equal(again, reduced) {
		t.Errorf("of the file: %v, want %v", again, reduced)
	}
}

// TestSamplesAreBounded: a thousand tasks and seven days take as much as two days do.
func TestSamplesAreBounded(t *testing.T) {
	const tasks, limit = 1000, 12 << 20
	var list []samples.Task
	for i := range tasks {
		list = append(list, samples.Task{Name: fmt.Sprintf("worker-%d", i), Role: "worker"})
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	s := samples.New("j", begin, list)
	last := heap()
	for day := range 7 {
		for minute := 0; minute < 24*60; minute += 5 {
			at := begin.Add(time.Duration(day*24*60+minute) * time.Minute)
			s.AddStep(at, int64(minute), 1)
			for i, task := range list {
				s.AddUsage(at, task.Name, full(int64(day*24*60+minute+1)*1000))
				s.AddScalars(at, task.Name, []*proto.Scalar{{Name: fmt.Sprintf("loss_%d", i), Value: 1, Min: 1, Mean: 1, Max: 1}})
			}
		}
		used := heap()
		if day >= 2 && used-last > 1<<20 {
			t.Errorf("day %d took %d bytes more", day, used-last)
		}
		last = used
	}
	if used := last - before; used > limit {
		t.Errorf("the samples take %d bytes, more than %d", used, limit)
	} else {
		t.Logf("the samples take %d bytes", used)
	}
	if n := pb.Size(all(s)); n > limit {
		t.Errorf("the file has %d bytes", n)
	} else {
		t.Logf("the file has %d bytes", n)
	}
	runtime.KeepAlive(s)
}

// TestSamplesAreRestored: a successor goes on where the file ends.
func TestSamplesAreRestored(t *testing.T) {
	tasks := []samples.Task{{"worker-0", "worker"}, {"worker-1", "worker"}}
	s := samples.New("j", begin, tasks)
	for i := range 2000 {
		at := begin.Add(time.Duration(i) * time.Second)
		s.AddStep(at, int64(i), 1)
		s.AddUsage(at, "worker-1", full(int64(i)*500))
		s.AddScalars(at, "worker-1", []*proto.Scalar{{Name: "loss", Min: 1, Mean: 2, Max: 3}})
	}
	saved, err := proto.UnmarshalSamples(must(pb.Marshal(all(s))))
	if err != nil {
		t.Fatal(err)
	}
	next := samples.New("j", begin, tasks)
	next.Restore(saved)
	if a, b := fmt.Sprint(all(s)), fmt.Sprint(all(next)); a != b { // not a number equals nothing
		t.Errorf("%s became %s", a, b)
	}
	cpu := find(t, saved.Series, proto.SeriesCPU, "worker", "worker-1")
	if cpu.Mean[100] < 0.49 || cpu.Mean[100] > 0.51 {
		t.Errorf("half a core is %v", cpu.Mean[100])
	}
	for name, want := range map[string]float32{proto.SeriesSent: 2000, proto.SeriesReceived: 3000, proto.SeriesGPU: 50, proto.SeriesGPUMemory: 7e9} {
		if got := find(t, saved.Series, name, "worker", "worker-1").Mean[100]; got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if slices.ContainsFunc(saved.Series, func(s *proto.Series) bool { return s.Task == "worker-0" && s.Name == proto.SeriesGPU }) {
		t.Error("a task without GPUs has a series of them")
	}
	next.AddStep(begin.Add(3000*time.Second), 7, 1)
	step := find(t, all(next).Series, proto.SeriesStep, "", "")
	if n := len(step.Mean); step.Max[n-1] != 7 || !math.IsNaN(float64(step.Mean[n-2])) {
		t.Errorf("it goes on as %v", step.Max)
	}
	next.Restore(&proto.JobSamples{Series: []*proto.Series{{Name: proto.SeriesStep, Mean: make([]float32, 5), IntervalMs: 1}, {Name: "loss", Scalar: true, Role: "other", IntervalMs: -1}}})
	if n := len(find(t, all(next).Series, proto.SeriesStep, "", "").Mean); n != len(step.Mean) {
		t.Error("what makes no sense is restored")
	}
	for _, text := range []string{"\xff", string(must(pb.Marshal(&proto.JobSamples{Series: []*proto.Series{{Mean: []float32{1}}}})))} {
		if _, err := proto.UnmarshalSamples([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// full is a heartbeat with all that is measured, after so many milliseconds of CPU time.
func full(cpu int64) *proto.Heartbeat {
	sent, received := 2000.0, 3000.0
	return &proto.Heartbeat{
		CpuMs: cpu, RssBytes: 1e9, SentBytesPerSecond: &sent, ReceivedBytesPerSecond: &received,
		Gpu: &proto.GPUUse{Percent: 50, MemoryBytes: 7e9, MemoryLimitBytes: 8e9},
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// TestOddReports: unknown tasks, clocks that go backwards, processes that end, and losses
// that are no numbers.
func TestOddReports(t *testing.T) {
	s := samples.New("j", begin, []samples.Task{{"ps-0", "ps"}})
	nan := math.NaN()
	s.AddScalars(begin, "ps-0", []*proto.Scalar{{Name: "loss", Value: nan, Min: nan, Mean: nan, Max: nan}})
	s.AddScalars(begin, "other", []*proto.Scalar{{Name: "loss", Min: 1, Mean: 1, Max: 1}})
	s.AddUsage(begin, "other", &proto.Heartbeat{CpuMs: 1, RssBytes: 1})
	if cores := s.AddUsage(begin.Add(time.Second), "ps-0", &proto.Heartbeat{CpuMs: (10 * time.Second).Milliseconds(), RssBytes: 5}); cores != 0 {
		t.Errorf("%v cores at first", cores)
	}
	if cores := s.AddUsage(begin.Add(3*time.Second), "ps-0", &proto.Heartbeat{CpuMs: (14 * time.Second).Milliseconds(), RssBytes: 5}); cores != 2 {
		t.Errorf("%v cores, want 2", cores)
	}
	if cores := s.AddUsage(begin.Add(4*time.Second), "ps-0", &proto.Heartbeat{CpuMs: (time.Second).Milliseconds(), RssBytes: 5}); cores != 0 {
		t.Errorf("%v cores after a process has ended", cores)
	}
	s.AddStep(begin.Add(time.Minute), 10, 0)
	s.AddStep(begin.Add(-time.Minute), 11, 0)
	got := all(s)
	if step := find(t, got.Series, proto.SeriesStep, "", ""); len(step.Max) != 61 || step.Max[60] != 11 || step.Min[60] != 10 {
		t.Errorf("steps %v", step.Max)
	}
	for _, x := range got.Series {
		if x.Scalar {
			t.Errorf("there is %v", x)
		}
	}
	s.AddStep(begin.Add(10*365*24*time.Hour), 12, 0)
	if step := find(t, all(s).Recent, proto.SeriesStep, "", ""); len(step.Max) > 360 || step.Max[len(step.Max)-1] != 12 {
		t.Errorf("after years: %v", step.Max)
	}
}

// TestValuesThatAreTooLarge: what is larger than a point can say is left out, and no mean of what is
// kept is.
func TestValuesThatAreTooLarge(t *testing.T) {
	s := samples.New("j", begin, []samples.Task{{"w-0", "w"}})
	for i := range 2000 {
		at, large := begin.Add(time.Duration(i)*time.Second), 3e38*float64(1-i%2*2)
		for name, v := range map[string]float64{"far apart": large, "large": 3e38, "too large": 1e39} {
			s.AddScalars(at, "w-0", []*proto.Scalar{{Name: name, Value: v, Min: v, Mean: v, Max: v}, {Name: name + ", its greatest", Value: 1, Min: 1, Mean: 1, Max: v}})
		}
		s.AddStep(at, int64(i), math.Inf(1))
	}
	finite := func(v float32) bool { return math.Abs(float64(v)) <= math.MaxFloat32 }
	for _, points := range []int32{0, 100, 3} {
		got := s.Select(&proto.SamplesRequest{Points: points})
		if len(got.Series) != 7 {
			t.Errorf("there are %d series", len(got.Series))
		}
		for _, x := range slices.Concat(got.Series, got.Recent) {
			for i := range x.Mean {
				if x.Has(i) && !(finite(x.Min[i]) && finite(x.Mean[i]) && finite(x.Max[i])) {
					t.Fatalf("of %s point %d of %d is from %v to %v, in the mean %v", x.Name, i, len(x.Mean), x.Min[i], x.Max[i], x.Mean[i])
				}
			}
		}
	}
	inf := float32(math.Inf(1))
	read, err := proto.UnmarshalSamples(must(pb.Marshal(&proto.JobSamples{Series: []*proto.Series{{IntervalMs: 1, Min: []float32{1, 1, -inf}, Mean: []float32{1, inf, 1}, Max: []float32{2, inf, 1}}}})))
	if err != nil || !read.Series[0].Has(0) || read.Series[0].Has(1) || read.Series[0].Has(2) {
		t.Errorf("what is infinite in a file is read as %v, %v", read, err)
	}
}
