// Package samples keeps measurements of a job over time: its steps, what its tasks use of CPU,
// memory, network and GPUs, and the scalars that its program reports, such as the loss. They take a
// bounded number of bytes however long the job runs.
//
//   - A point is the least, the mean and the greatest of what was measured in an interval.
//   - A window is a series of points without gaps. That of a job's life doubles its interval
//     when it is full; the recent one drops its oldest points.
//   - A scalar is a number that a program reports under a name.
package samples

import (
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/proto"
)

const (
	// lifePoints and recentPoints bound the points of a series of the job or of a scalar.
	lifePoints   = 720
	recentPoints = 360

	lifeInterval   = int64(time.Second / time.Millisecond) // at the job's start
	recentInterval = 5 * lifeInterval

	// taskBytes bounds what the points of all tasks take, as far as each has minTaskPoints;
	// none has more than maxTaskPoints.
	taskBytes     = 6 << 20
	minTaskPoints = 32
	maxTaskPoints = 512
	pointBytes    = 12
	ofTask        = 4 // series of each task without GPUs

	// The most series of scalars: of roles, and of single tasks in roles of several.
	maxRoleScalars = 32
	maxTaskScalars = 48
	maxName        = 64 // bytes
)

// Task is a task that is measured.
type Task struct{ Name, Role string }

// Samples are the measurements of a job. The methods may be called concurrently.
type Samples struct {
	id    string
	start int64          // of the job, in milliseconds since 1970
	tasks []Task         // in the job's order
	index map[string]int // of a task
	size  map[string]int // of a role: the number of its tasks

	mu                   sync.Mutex
	step, rate, complete history
	usage                []usage // by task
	scalars              map[scalar]*history
	single               int // how many of these are of a single task
}

// scalar identifies a series, as of a scalar: the task is empty if it is that of a role.
type scalar struct{ role, name, task string }

// history is a series over the life of the job, and over its last time.
type history struct{ life, recent window }

func newHistory(start int64) history {
	return history{
		window{start: start, interval: lifeInterval, limit: lifePoints},
		window{start: start, interval: recentInterval, limit: recentPoints, slides: true},
	}
}

func (h *history) add(at int64, p point) {
	h.life.add(at, p)
	h.recent.add(at, p)
}

// usage is what is measured of a task.
type usage struct {
	windows   [len(usageNames)]window
	spent, at int64 // CPU time of its present processes, and when that was; milliseconds
}

// The windows of a task, with the names of their series.
const (
	cpuWindow = iota
	memoryWindow
	sentWindow
	receivedWindow
	gpuWindow
	gpuMemoryWindow
)

var usageNames = [...]string{
	cpuWindow: proto.SeriesCPU, memoryWindow: proto.SeriesMemory, sentWindow: proto.SeriesSent, receivedWindow: proto.SeriesReceived,
	gpuWindow: proto.SeriesGPU, gpuMemoryWindow: proto.SeriesGPUMemory,
}

// New returns the samples of a job that started at a time.
func New(id string, start time.Time, tasks []Task) *Samples {
	s := &Samples{
		id: id, start: start.UnixMilli(), tasks: tasks, index: make(map[string]int, len(tasks)), size: map[string]int{},
		usage: make([]usage, len(tasks)), scalars: map[scalar]*history{},
	}
	s.step, s.rate, s.complete = newHistory(s.start), newHistory(s.start), newHistory(s.start)
	w := window{start: s.start, interval: lifeInterval, limit: taskPoints(len(tasks))}
	for i, t := range tasks {
		s.index[t.Name] = i
		s.size[t.Role]++
		for k := range s.usage[i].windows {
			s.usage[i].windows[k] = w
		}
	}
	return s
}

// taskPoints returns how many points a series of one of so many tasks may have.
func taskPoints(tasks int) int32 {
	n := taskBytes / (ofTask * pointBytes * max(1, tasks))
	return int32(min(max(minTaskPoints, n), maxTaskPoints) &^ 1)
}

// AddStep takes in the job's step and the number of steps a second.
func (s *Samples) AddStep(at time.Time, step int64, rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step.add(at.UnixMilli(), single(float64(step)))
	if rate > 0 {
		s.rate.add(at.UnixMilli(), single(rate))
	}
}

// AddCheckpoint takes in that the checkpoint of a step is complete.
func (s *Samples) AddCheckpoint(at time.Time, step int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete.add(at.UnixMilli(), single(float64(step)))
}

// AddUsage takes in what the present processes of a task use, as a heartbeat says it. It returns
// the CPU time per second since the last call; 0 if that is not known.
func (s *Samples) AddUsage(at time.Time, task string, h *proto.Heartbeat) (cores float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[task]
	if !ok {
		return 0
	}
	u, now := &s.usage[i], at.UnixMilli()
	if h.CpuMs == 0 && h.RssBytes == 0 { // nothing runs
		u.at = 0
		return 0
	}
	add := func(window int, value float64) { u.windows[window].add(now, single(value)) }
	add(memoryWindow, float64(h.RssBytes))
	if u.at != 0 && now > u.at && h.CpuMs >= u.spent { // else a process has ended
		cores = float64(h.CpuMs-u.spent) / float64(now-u.at)
		add(cpuWindow, cores)
	}
	u.spent, u.at = h.CpuMs, now
	if h.SentBytesPerSecond != nil && h.ReceivedBytesPerSecond != nil {
		add(sentWindow, *h.SentBytesPerSecond)
		add(receivedWindow, *h.ReceivedBytesPerSecond)
	}
	if g := h.Gpu; g != nil {
		add(gpuWindow, g.Percent)
		add(gpuMemoryWindow, float64(g.MemoryBytes))
	}
	return cores
}

// AddScalars takes in what a task's program has reported since the last call. What does not
// fit the bounds is left out.
func (s *Samples) AddScalars(at time.Time, task string, list []*proto.Scalar) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.index[task]
	if !ok {
		return
	}
	role := s.tasks[i].Role
	for _, v := range list {
		p := point{float32(v.Min), float32(v.Mean), float32(v.Max)}
		if !p.finite() || len(v.Name) > maxName {
			continue
		}
		if h := s.scalar(scalar{role: role, name: v.Name}); h != nil {
			h.add(at.UnixMilli(), p)
		}
		if s.size[role] == 1 {
			continue // the same
		}
		if h := s.scalar(scalar{role, v.Name, task}); h != nil {
			h.add(at.UnixMilli(), p)
		}
	}
}

// scalar returns a series of a scalar; nil if there are too many. s.mu is held.
func (s *Samples) scalar(k scalar) *history {
	h := s.scalars[k]
	if h != nil {
		return h
	}
	switch {
	case k.task == "" && len(s.scalars)-s.single == maxRoleScalars, k.task != "" && s.single == maxTaskScalars:
		return nil
	case k.task != "":
		s.single++
	}
	added := newHistory(s.start)
	s.scalars[k] = &added
	return &added
}

func single(v float64) point { return point{float32(v), float32(v), float32(v)} }

// Select returns the samples that a request asks for.
func (s *Samples) Select(r *proto.SamplesRequest) *proto.JobSamples {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := &proto.JobSamples{Id: s.id}
	add := func(to *[]*proto.Series, of scalar, isScalar bool, w *window) {
		if r.Selects(of.name, of.task) {
			about := &proto.Series{Name: of.name, Role: of.role, Task: of.task, Scalar: isScalar}
			*to = append(*to, w.series(about).Reduce(int(r.GetPoints())))
		}
	}
	both := func(of scalar, isScalar bool, h *history) {
		add(&all.Series, of, isScalar, &h.life)
		add(&all.Recent, of, isScalar, &h.recent)
	}
	both(scalar{name: proto.SeriesStep}, false, &s.step)
	both(scalar{name: proto.SeriesStepsPerSecond}, false, &s.rate)
	both(scalar{name: proto.SeriesCompleteStep}, false, &s.complete)
	for _, k := range s.sortedScalars() {
		both(k, true, s.scalars[k])
	}
	for i, t := range s.tasks {
		for k, name := range usageNames {
			if k > memoryWindow && len(s.usage[i].windows[k].points) == 0 {
				continue // where the kernel does not tell, or there are no GPUs
			}
			add(&all.Series, scalar{t.Role, name, t.Name}, false, &s.usage[i].windows[k])
		}
	}
	return all
}

// sortedScalars returns the scalars in the order in which they are shown: those of roles
// first. s.mu is held.
func (s *Samples) sortedScalars() []scalar {
	var list []scalar
	for k := range s.scalars {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b scalar) int {
		if (a.task == "") != (b.task == "") {
			return len(a.task) - len(b.task)
		}
		return strings.Compare(a.role+" "+a.name+" "+a.task, b.role+" "+b.name+" "+b.task)
	})
	return list
}

// Restore takes in what an earlier master of the job has saved. It is called before
// anything is added.
func (s *Samples) Restore(saved *proto.JobSamples) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, from := range saved.GetSeries() {
		if h := s.saved(from); h != nil {
			h.life.restore(from)
			continue
		}
		i, known := s.index[from.Task]
		if k := slices.Index(usageNames[:], from.Name); known && k >= 0 && !from.Scalar {
			s.usage[i].windows[k].restore(from)
		}
	}
	for _, from := range saved.GetRecent() {
		if h := s.saved(from); h != nil {
			h.recent.restore(from)
		}
	}
}

// saved returns what a series was saved of; nil if that is a task's usage, or is left out.
// s.mu is held.
func (s *Samples) saved(from *proto.Series) *history {
	switch {
	case from.Scalar && len(from.Name) <= maxName && s.size[from.Role] > 0:
		return s.scalar(scalar{from.Role, from.Name, from.Task})
	case !from.Scalar && from.Name == proto.SeriesStep:
		return &s.step
	case !from.Scalar && from.Name == proto.SeriesStepsPerSecond:
		return &s.rate
	case !from.Scalar && from.Name == proto.SeriesCompleteStep:
		return &s.complete
	}
	return nil
}
