package metrics

import (
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/am/status"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// family is the metrics of one name.
type family struct {
	name, help string
	kind       prometheus.ValueType // unless it is a histogram
	labels     []string             // besides appLabel
	// values calls emit for each metric; for none where the value is not known. Each call
	// has a value for each label.
	values func(s *scrape, emit func(value float64, labels ...string))
	// histogram is what a histogram shows; nil: it is none.
	histogram func(s *scrape) status.Histogram
}

// scrape is what one scrape shows.
type scrape struct {
	*proto.JobStatus
	status.Totals
	now time.Time
}

// appLabel is the label that every metric has: the ID of the job. Jobs behind one proxy
// have the same address, so that Prometheus' own labels do not tell them apart.
const appLabel = "app"

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// families are all that is exported, in the order of the documentation.
var families = []family{
	{name: "holdfast_job_info", help: "Always 1; the labels describe the job.", kind: gauge, labels: []string{"name", "user", "framework"},
		values: func(s *scrape, emit func(float64, ...string)) { emit(1, s.Name, s.User, s.Framework) }},
	{name: "holdfast_job_state", help: "1 for the state that the job is in, 0 for the others.", kind: gauge, labels: []string{"state"},
		values: func(s *scrape, emit func(float64, ...string)) {
			for state := proto.JobState(1); int(state) < len(proto.JobState_name); state++ {
				emit(truth(s.State == state), proto.StateWord(state))
			}
		}},
	{name: "holdfast_start_time_seconds", help: "When the job started, in seconds since 1970.", kind: gauge,
		values: known(func(s *scrape) float64 { return float64(s.StartedUnixMs) / 1000 })},
	{name: "holdfast_tasks", help: "Tasks by role and state.", kind: gauge, labels: []string{"role", "state"}, values: tasks},
	{name: "holdfast_task_failures", help: "Failures of the present tasks that count towards --restarts, by role.", kind: gauge, labels: []string{"role"},
		values: byRole(func(t *proto.TaskStatus) float64 { return float64(t.Failures) })},
	{name: "holdfast_cpu_cores", help: "CPU seconds per second of the tasks' processes, by role.", kind: gauge, labels: []string{"role"},
		values: byRole(func(t *proto.TaskStatus) float64 { return t.CpuCores })},
	{name: "holdfast_memory_bytes", help: "Memory of the tasks' processes, by role.", kind: gauge, labels: []string{"role"},
		values: byRole(func(t *proto.TaskStatus) float64 { return float64(t.RssBytes) })},
	{name: "holdfast_network_received_bytes_per_second", help: "What the tasks' processes receive over TCP, by role, as far as known.", kind: gauge, labels: []string{"role"},
		values: where((*proto.TaskStatus).HasTraffic, (*proto.TaskStatus).GetReceivedBytesPerSecond)},
	{name: "holdfast_network_sent_bytes_per_second", help: "What the tasks' processes send over TCP, by role, as far as known.", kind: gauge, labels: []string{"role"},
		values: where((*proto.TaskStatus).HasTraffic, (*proto.TaskStatus).GetSentBytesPerSecond)},
	{name: "holdfast_gpus_busy", help: "GPUs of the tasks in which something computes, by role; one that does half the time counts for a half.", kind: gauge, labels: []string{"role"},
		values: where((*proto.TaskStatus).HasGPUUse, (*proto.TaskStatus).BusyGPUs)},
	{name: "holdfast_gpu_memory_bytes", help: "Memory in use of the tasks' GPUs, by role.", kind: gauge, labels: []string{"role"},
		values: where((*proto.TaskStatus).HasGPUUse, func(t *proto.TaskStatus) float64 { return float64(t.GpuMemoryBytes) })},
	{name: "holdfast_task_step_seconds", help: "Time that a step of a task takes, or from one report of a step to the next where all count the same steps, in roles of at most 100 tasks.", kind: gauge, labels: []string{"role", "task"},
		values: perTask(func(t *proto.TaskStatus) (float64, bool) { return t.StepSeconds, t.StepSeconds > 0 })},
	{name: "holdfast_task_work_share", help: "Share of the time in which a rank works, and does not wait for others, in roles of at most 100 tasks.", kind: gauge, labels: []string{"role", "task"},
		values: perTask(func(t *proto.TaskStatus) (float64, bool) { return t.GetWorkShare(), t.WorkShare != nil })},
	{name: "holdfast_stragglers", help: "Tasks that are slower than the others of their role for --straggler-time.", kind: gauge, labels: []string{"role"},
		values: byRole(func(t *proto.TaskStatus) float64 { return truth(t.Straggler != nil) })},
	{name: "holdfast_spares", help: "Spare containers that the job has.", kind: gauge,
		values: always(func(s *scrape) float64 { return float64(len(s.Spares)) })},
	{name: "holdfast_generation", help: "Restarts of all tasks together.", kind: gauge,
		values: always(func(s *scrape) float64 { return float64(s.Generation) })},
	{name: "holdfast_group_tasks", help: "Tasks that restart together, and work.", kind: gauge,
		values: known(func(s *scrape) float64 {
			return float64(s.PresentGeneration().GetTasks())
		})},
	{name: "holdfast_step", help: "Step that a task reported last.", kind: gauge,
		values: known(func(s *scrape) float64 { return float64(s.Step) })},
	{name: "holdfast_steps_per_second", help: "Rate of steps, which falls while none is reported.", kind: gauge,
		values: known(func(s *scrape) float64 { return s.StepsPerSecond })},
	{name: "holdfast_scalar", help: "Value of a scalar that a task reported last.", kind: gauge, labels: []string{"name"},
		values: func(s *scrape, emit func(float64, ...string)) {
			for _, v := range s.Scalars {
				emit(v.Value, v.Name)
			}
		}},
	{name: "holdfast_checkpoint_step", help: "Step of the newest complete checkpoint.", kind: gauge,
		values: known(func(s *scrape) float64 { return float64(s.CompleteStep) })},
	{name: "holdfast_checkpoint_age_seconds", help: "Time since the newest complete checkpoint was found complete.", kind: gauge,
		values: func(s *scrape, emit func(float64, ...string)) {
			if at := s.CompleteStepAtUnixMs; at != 0 {
				emit(max(0, s.now.Sub(time.UnixMilli(at)).Seconds()))
			}
		}},
	{name: "holdfast_store_bytes_total", help: "Bytes in files that tasks have completed in checkpoint directories.", kind: counter,
		values: always(func(s *scrape) float64 { return float64(s.StoredBytes) })},
	{name: "holdfast_save_seconds", help: "Time that the save of a checkpoint took: from the first change of one of its files until the last was in its place.",
		histogram: func(s *scrape) status.Histogram { return s.Saves }},
	{name: "holdfast_restore_seconds", help: "Time that an attempt read at its checkpoint paths before it went on.",
		histogram: func(s *scrape) status.Histogram { return s.Restores }},
	{name: "holdfast_losses_total", help: "Losses of tasks by cause.", kind: counter, labels: []string{"cause"},
		values: func(s *scrape, emit func(float64, ...string)) {
			for cause, n := range s.Losses {
				emit(float64(n), cause)
			}
		}},
	{name: "holdfast_incidents_open", help: "Losses that have not been recovered from.", kind: gauge,
		values: always(func(s *scrape) float64 { return float64(s.OpenIncidents()) })},
	{name: "holdfast_recovery_seconds", help: "Time from a loss to the start of the next attempt.",
		histogram: func(s *scrape) status.Histogram { return s.Recovery }},
	{name: "holdfast_recovery_progress_seconds", help: "Time from a loss to the first new step of the job.",
		histogram: func(s *scrape) status.Histogram { return s.Progress }},
	{name: "holdfast_repeated_steps_total", help: "Steps that were made again after losses.", kind: counter,
		values: always(func(s *scrape) float64 { return float64(s.RepeatedSteps) })},
	{name: "process_resident_memory_bytes", help: "Memory of the application master.", kind: gauge,
		values: known(func(*scrape) float64 {
			n, _ := proc.RSS(os.Getpid()) // else it is not known
			return float64(n)
		})},
	{name: "go_goroutines", help: "Goroutines of the application master.", kind: gauge,
		values: always(func(*scrape) float64 { return float64(runtime.NumGoroutine()) })},
}

// always returns the values of a family with one metric.
func always(value func(*scrape) float64) func(*scrape, func(float64, ...string)) {
	return func(s *scrape, emit func(float64, ...string)) { emit(value(s)) }
}

// known is always for a value of which 0 means that it is not known.
func known(value func(*scrape) float64) func(*scrape, func(float64, ...string)) {
	return func(s *scrape, emit func(float64, ...string)) {
		if v := value(s); v != 0 {
			emit(v)
		}
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// tasks counts the tasks of each role in each state.
func tasks(s *scrape, emit func(float64, ...string)) {
	for _, c := range s.Roles() {
		for state := proto.TaskState(1); int(state) < len(c.In); state++ {
			emit(float64(c.In[state]), c.Role, proto.StateWord(state))
		}
	}
}

// where is byRole of the roles of which any task has the value.
func where(has func(*proto.TaskStatus) bool, value func(*proto.TaskStatus) float64) func(*scrape, func(float64, ...string)) {
	all := byRole(value)
	return func(s *scrape, emit func(float64, ...string)) {
		all(s, func(v float64, role ...string) {
			if slices.ContainsFunc(s.Tasks, func(t *proto.TaskStatus) bool { return t.Role == role[0] && has(t) }) {
				emit(v, role...)
			}
		})
	}
}

// byRole returns the values of a family that adds up the tasks of each role.
func byRole(value func(*proto.TaskStatus) float64) func(*scrape, func(float64, ...string)) {
	return func(s *scrape, emit func(float64, ...string)) {
		sum := map[string]float64{}
		for _, t := range s.Tasks {
			sum[t.Role] += value(t)
		}
		for _, c := range s.Roles() {
			emit(sum[c.Role], c.Role)
		}
	}
}

// tasksEach bounds the tasks of a role of which each has metrics of its own: Prometheus keeps
// every series.
const tasksEach = 100

// perTask returns the values of a family with a metric for each task, as far as it is known.
func perTask(value func(*proto.TaskStatus) (float64, bool)) func(*scrape, func(float64, ...string)) {
	return func(s *scrape, emit func(float64, ...string)) {
		all := map[string]int{}
		for _, c := range s.Roles() {
			all[c.Role] = c.All
		}
		for _, t := range s.Tasks {
			if v, known := value(t); known && all[t.Role] <= tasksEach {
				emit(v, t.Role, t.Task)
			}
		}
	}
}
