package metrics_test

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"holdfast/am/metrics"
	"holdfast/am/status"
	"holdfast/am/status/samples"
	"holdfast/proto"
)

var update = flag.Bool("update", false, "write the table of docs/metrics.md")

// newStore returns a status that has something to show in every metric.
func newStore() *status.Store {
	now, share := time.Now().UnixMilli(), 0.25
	s := status.New(&proto.JobStatus{
		Id: "application_1_0001", Name: "mnist\xff", User: "alice", Framework: "tensorflow", State: proto.JobState_JOB_STATE_RUNNING,
		StartedUnixMs: 1000, Generation: 2, Step: 400, StepsPerSecond: 2.5, CompleteStep: 350, CompleteStepAtUnixMs: now - 5_000_000,
		Tasks: []*proto.TaskStatus{
			{Task: "ps-0", Role: "ps", State: proto.TaskState_TASK_STATE_RUNNING, RssBytes: 1000},
			{Task: "worker-0", Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING, CpuCores: 1.5, RssBytes: 300, Failures: 1, SentBytesPerSecond: 5, ReceivedBytesPerSecond: 7, Gpus: 2, GpuPercent: 75, GpuMemoryBytes: 9, GpuMemoryLimitBytes: 10, StepSeconds: 0.5, WorkShare: &share},
			{Task: "worker-1", Role: "worker", State: proto.TaskState_TASK_STATE_RESTARTING, CpuCores: 0.5, RssBytes: 400, Failures: 2, Straggler: &proto.Straggler{}},
		},
		Incidents: []*proto.Incident{
			{AtUnixMs: now - 9000, Task: "worker-0", Cause: "node lost", RecoveredUnixMs: now - 6000, RecoveredAfterMs: 3000, ProgressUnixMs: now - 2000, ProgressAfterMs: 7000, LostSteps: 50},
			{AtUnixMs: now - 1000, Task: "worker-1", Cause: "out of memory"},
		},
		Scalars:     []*proto.ScalarValue{{Name: "loss", Value: 0.25}},
		Generations: []*proto.Generation{{Number: 1, Tasks: 8, Of: 8, EndedUnixMs: 1}, {Number: 2, Tasks: 6, Of: 8}},
	}, samples.New("", time.Now(), nil), nil, 0)
	s.Saved(12300 * time.Millisecond)
	s.Committed([]*proto.CommittedFile{{Name: []byte("a"), Size: 1000}, {Name: []byte("b"), From: []byte("a"), Size: 1000}, {Name: []byte("c"), Size: 24}})
	return s
}

func scrape(t *testing.T, h http.Handler) string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if kind := w.Header().Get("Content-Type"); w.Code != http.StatusOK || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Fatalf("answered %d as %s:\n%s", w.Code, kind, w.Body)
	}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestScrape: what is exported is what the status has.
func TestScrape(t *testing.T) {
	text := scrape(t, metrics.Handler("application_1_0001", newStore()))
	const app = `app="application_1_0001"`
	for _, want := range []string{
		`holdfast_job_info{` + app + `,framework="tensorflow",name="mnist` + "\uFFFD" + `",user="alice"} 1`,
		`holdfast_job_state{` + app + `,state="running"} 1`,
		`holdfast_job_state{` + app + `,state="failed"} 0`,
		`holdfast_start_time_seconds{` + app + `} 1`,
		`holdfast_tasks{` + app + `,role="worker",state="running"} 1`,
		`holdfast_tasks{` + app + `,role="worker",state="restarting"} 1`,
		`holdfast_tasks{` + app + `,role="ps",state="restarting"} 0`,
		`holdfast_task_failures{` + app + `,role="worker"} 3`,
		`holdfast_cpu_cores{` + app + `,role="worker"} 2`,
		`holdfast_network_sent_bytes_per_second{` + app + `,role="worker"} 5`,
		`holdfast_network_received_bytes_per_second{` + app + `,role="worker"} 7`,
		`holdfast_gpus_busy{` + app + `,role="worker"} 1.5`,
		`holdfast_gpu_memory_bytes{` + app + `,role="worker"} 9`,
		`holdfast_memory_bytes{` + app + `,role="worker"} 700`,
		`holdfast_task_step_seconds{` + app + `,role="worker",task="worker-0"} 0.5`,
		`holdfast_task_work_share{` + app + `,role="worker",task="worker-0"} 0.25`,
		`holdfast_stragglers{` + app + `,role="worker"} 1`,
		`holdfast_stragglers{` + app + `,role="ps"} 0`,
		`holdfast_generation{` + app + `} 2`,
		`holdfast_group_tasks{` + app + `} 6`,
		`holdfast_step{` + app + `} 400`,
		`holdfast_steps_per_second{` + app + `} 2.5`,
		`holdfast_scalar{` + app + `,name="loss"} 0.25`,
		`holdfast_checkpoint_step{` + app + `} 350`,
		`holdfast_checkpoint_age_seconds{` + app + `} 50`, // 5000 and a fraction
		`holdfast_store_bytes_total{` + app + `} 1024`,
		`holdfast_losses_total{` + app + `,cause="node lost"} 1`,
		`holdfast_losses_total{` + app + `,cause="container preempted"} 0`,
		`holdfast_incidents_open{` + app + `} 1`,
		`holdfast_recovery_seconds_bucket{` + app + `,le="2.5"} 0`,
		`holdfast_recovery_seconds_bucket{` + app + `,le="5"} 1`,
		`holdfast_recovery_seconds_sum{` + app + `} 3`,
		`holdfast_recovery_progress_seconds_count{` + app + `} 1`,
		`holdfast_repeated_steps_total{` + app + `} 50`,
		`holdfast_save_seconds_bucket{` + app + `,le="10"} 0`,
		`holdfast_save_seconds_bucket{` + app + `,le="20"} 1`,
		`holdfast_save_seconds_sum{` + app + `} 12.3`,
		`holdfast_restore_seconds_count{` + app + `} 0`,
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("%s is missing in:\n%s", want, text)
		}
	}
}

// TestWhatIsNotKnownIsLeftOut: a job that has not made a step has no step, and none that
// is 0.
func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	text := scrape(t, metrics.Handler("local-1", status.New(&proto.JobStatus{}, samples.New("", time.Now(), nil), nil, 0)))
	if found := regexp.MustCompile(`(?m)^holdfast_(step|steps_per_second|checkpoint_\w+|start_time_seconds|scalar)\b.*`).FindAllString(text, -1); found != nil {
		t.Errorf("a job of which nothing is known has %q", found)
	}
}

// TestNamesAreConventional: Prometheus' own linter finds nothing.
func TestNamesAreConventional(t *testing.T) {
	c := metrics.NewCollector("application_1_0001", newStore())
	if problems, err := testutil.CollectAndLint(c); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	problems, err := promlint.New(strings.NewReader(scrape(t, metrics.Handler("application_1_0001", newStore())))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

var table = regexp.MustCompile(`(?s)(<!-- metrics \(make docs\) -->\n).*?(<!-- end of metrics -->)`)

// TestDocsHaveTheMetrics: the table of docs/metrics.md is what is exported.
func TestDocsHaveTheMetrics(t *testing.T) {
	const name = "../../docs/metrics.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m := table.FindStringSubmatchIndex(string(text))
	if m == nil {
		t.Fatalf("%s has no place for the table", name)
	}
	want := string(text[:m[3]]) + metrics.Table() + string(text[m[4]:])
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("the table of %s is not that of the metrics; make docs writes it", name)
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDashboard: the queries of the dashboard are about metrics and labels that there are.
func TestDashboard(t *testing.T) {
	labels := exported(t)
	text, err := os.ReadFile("../../examples/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var queries []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for key, e := range v {
				if q, is := e.(string); is && (key == "expr" || key == "definition") {
					queries = append(queries, q)
				}
				walk(e)
			}
		}
	}
	walk(dashboard)
	if len(queries) < 10 {
		t.Errorf("the dashboard has only the queries %q", queries)
	}
	selector := regexp.MustCompile(`\b((?:holdfast|process|go)_\w+)(?:\{([^}]*)\})?`)
	grouping := regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
	matcher := regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	for _, q := range queries {
		names := selector.FindAllStringSubmatch(q, -1)
		if len(names) == 0 {
			t.Errorf("the query %q has no metric", q)
		}
		var of []string // labels of the query's metrics
		for _, m := range names {
			known, ok := labels[m[1]]
			if !ok {
				t.Errorf("the query %q is about %s, which is not exported", q, m[1])
			}
			of = append(of, known...)
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if !slices.Contains(known, l[1]) {
					t.Errorf("the query %q selects by %s, which %s does not have", q, l[1], m[1])
				}
			}
			if !strings.Contains(m[2], "app=") && !strings.HasPrefix(q, "label_values(") {
				t.Errorf("the query %q adds up the jobs", q)
			}
		}
		for _, g := range grouping.FindAllStringSubmatch(q, -1) {
			for l := range strings.SplitSeq(g[1], ",") {
				if l = strings.TrimSpace(l); !slices.Contains(of, l) {
					t.Errorf("the query %q groups by %s, which its metrics do not have", q, l)
				}
			}
		}
	}
}

// exported returns the labels of every name that a query can have.
func exported(t *testing.T) map[string][]string {
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.NewCollector("application_1_0001", newStore()))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, f := range families {
		var of []string
		for _, l := range f.Metric[0].Label {
			of = append(of, l.GetName())
		}
		labels[f.GetName()] = of
		if f.Metric[0].Histogram != nil {
			delete(labels, f.GetName())
			labels[f.GetName()+"_bucket"], labels[f.GetName()+"_sum"], labels[f.GetName()+"_count"] = append(slices.Clone(of), "le"), of, of
		}
	}
	return labels
}
