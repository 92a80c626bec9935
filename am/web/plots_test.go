package web_test

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/am/status/samples"
	"holdfast/am/web"
	"holdfast/proto"
)

// measured is a job of an hour with a loss that falls from 100 to 0.1, in which worker-1
// was lost after half an hour and was back five minutes later, and no step was made until
// then.
func measured(workers int) web.Site {
	start := time.UnixMilli(1_800_000_000_000)
	job := &proto.JobStatus{
		Name: "measured", State: proto.JobState_JOB_STATE_SUCCEEDED, StartedUnixMs: start.UnixMilli(), EndedUnixMs: start.Add(time.Hour).UnixMilli(),
		Incidents: []*proto.Incident{{Task: "worker-1", Cause: "preempted", AtUnixMs: start.Add(30 * time.Minute).UnixMilli(), RecoveredUnixMs: start.Add(35 * time.Minute).UnixMilli()}},
	}
	var tasks []samples.Task
	for i := range workers {
		name := fmt.Sprintf("worker-%d", i)
		job.Tasks = append(job.Tasks, &proto.TaskStatus{Task: name, Role: "worker", Index: int32(i)})
		tasks = append(tasks, samples.Task{Name: name, Role: "worker"})
	}
	s := samples.New("application_1_0001", start, tasks)
	for at := time.Duration(0); at < time.Hour; at += 5 * time.Second {
		now := start.Add(at)
		for _, t := range tasks {
			s.AddUsage(now, t.Name, &proto.Heartbeat{CpuMs: (at/2 + time.Second).Milliseconds(), RssBytes: 1 << 30})
		}
		if at >= 30*time.Minute && at < 35*time.Minute {
			continue
		}
		s.AddStep(now, int64(at.Seconds()), 2)
		loss := math.Pow(10, 2-3*at.Minutes()/60)
		s.AddScalars(now, "worker-0", []*proto.Scalar{{Name: "loss", Min: loss / 2, Mean: loss, Max: loss * 2}})
		if at%(10*time.Minute) == 0 {
			s.AddCheckpoint(now, int64(at.Seconds()))
		}
	}
	return web.Site{Status: fixed{job}, Samples: source(s)}
}

func source(s *samples.Samples) web.SampleSource {
	return func(_ context.Context, r *proto.SamplesRequest) (*proto.JobSamples, error) { return s.Select(r), nil }
}

// TestPlots: scalars, steps and resources are drawn over the job's life, with its losses and
// checkpoints.
func TestPlots(t *testing.T) {
	site := measured(2)
	text := strings.ReplaceAll(get(t, site, "/plots"), "</title>", "\n")
	for _, want := range []string{
		"<b>loss</b>", "<b>step</b>", "<b>steps a second</b>", "<b>CPUs in use</b>", "<b>memory</b>", `href="samples.csv?name=loss&amp;role=worker"`,
		"<small>0.5</small>", "1.0 GiB", // CPUs, and memory
		`<rect class="down" x="50%" width="8.33%"`, `<a href="./#incident-worker-1-0"><svg x="50%"`, "worker-1 lost: preempted",
		`<svg x="16.67%" y="116"`, "checkpoint of step 600 complete", "all 1h", "last 30m", "\nworker-1 0.5\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	loss := chartOf(t, text, "loss")
	// Nothing was measured while the task was down: the line has two parts.
	if n := strings.Count(pathOf(t, loss, "line"), "M"); n != 2 {
		t.Errorf("the line of the loss has %d parts: %s", n, loss)
	}
	if !strings.Contains(loss, `class="band c0"`) {
		t.Errorf("the range of the loss is not drawn: %s", loss)
	}
	// On a logarithmic axis it is a straight line from top to bottom.
	loss = chartOf(t, get(t, site, "/plots?log=1"), "loss")
	var x, y float64
	middle := strings.Split(pathOf(t, loss, "line"), "L")
	if _, err := fmt.Sscanf(middle[len(middle)/4], "%f %f", &x, &y); err != nil || math.Abs((x-250)/1000-(y-25)/100) > 0.12 {
		t.Errorf("at %.0f the logarithm of the loss is at %.0f: %v", x, y, err)
	}
	for _, want := range []string{">0.1</text>", ">100</text>"} {
		if !strings.Contains(loss, want) {
			t.Errorf("the logarithmic axis has no %q: %s", want, loss)
		}
	}
	// The last minutes only, in finer resolution.
	text = get(t, site, "/plots?span=5m")
	if strings.Contains(text, "preempted") || !strings.Contains(text, ">08:58</text>") {
		t.Errorf("the last five minutes are drawn as:\n%s", text)
	}
	// Of one task, its own scalars too.
	if text = get(t, site, "/plots?task=worker-0"); !strings.Contains(chartOf(t, text, "loss"), ">worker-0 <small>") || strings.Contains(text, ">worker-1 <small>") {
		t.Errorf("of one task is shown:\n%s", text)
	}
	// The page of the job has the loss and the rate, and the checkpoints on its timeline.
	text = get(t, site, "/")
	if _, row, _ := strings.Cut(text, `<th scope="row">checkpoints<td>`); !strings.Contains(row, `<svg x="16.67%" overflow="visible"><path class="mark sealed"`) {
		t.Errorf("the timeline has no checkpoints:\n%s", text)
	}
	if strings.Count(text, "<figure") != 2 || chartOf(t, text, "loss") == "" || chartOf(t, text, "steps a second") == "" {
		t.Errorf("the page of the job has not the two main charts:\n%s", text)
	}
}

// TestEachChartHasItsNumbers: the CSV beside a chart has the series that are drawn in it, and a value
// of each of them.
func TestEachChartHasItsNumbers(t *testing.T) {
	for _, page := range []string{"/plots", "/plots?task=worker-1", "/plots?span=30m", "/"} {
		site := measured(12)
		charts := regexp.MustCompile(`(?s)<figure class="chart">.*?</figure>`).FindAllString(get(t, site, page), -1)
		if len(charts) < 2 {
			t.Errorf("%s has %d charts", page, len(charts))
		}
		for _, chart := range charts {
			link := regexp.MustCompile(`class="csv" href="([^"]*)"`).FindStringSubmatch(chart)
			rows, err := csv.NewReader(strings.NewReader(get(t, site, "/"+html.UnescapeString(link[1])))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			drawn, told := map[string]bool{}, map[string]bool{}
			for _, l := range regexp.MustCompile(`<span class="key [^"]*">([^ ]*) <small>`).FindAllStringSubmatch(chart, -1) {
				drawn[l[1]] = true
			}
			for _, row := range rows[1:] {
				told[cmp.Or(row[3], row[2], "job")] = true
			}
			if len(drawn) == 0 || !maps.Equal(drawn, told) {
				t.Errorf("on %s, %s has %v, and of the chart are drawn %v", page, link[1], told, drawn)
			}
		}
		link := regexp.MustCompile(`<a href="(samples.json[^"]*)">`).FindStringSubmatch(get(t, site, page))
		if strings.HasPrefix(page, "/plots") && !strings.Contains(get(t, site, "/"+html.UnescapeString(link[1])), `"name":"cpu_cores","role":"worker","task":"worker-1"`) {
			t.Errorf("on %s, %s does not have the CPUs of worker-1", page, link[1])
		}
	}
}

// TestSamplesAsNumbers: what is plotted can be had as numbers.
func TestSamplesAsNumbers(t *testing.T) {
	site := measured(2)
	rows, err := csv.NewReader(strings.NewReader(get(t, site, "/samples.csv?name=loss&role=worker"))).ReadAll()
	if err != nil || len(rows) < 300 || strings.Join(rows[0], ",") != "time,name,role,task,min,mean,max" || strings.Join(rows[1][:4], ",") != "2027-01-15T08:00:00Z,loss,worker," {
		t.Errorf("%v: %d rows, as %q", err, len(rows), rows[:min(len(rows), 2)])
	}
	var got struct {
		Version int `json:"version"`
		Series  []struct {
			Name, Task string
			Mean       []*float64
		}
	}
	if err := json.Unmarshal([]byte(get(t, site, "/samples.json?name=cpu_cores&task=worker-1&points=10")), &got); err != nil || len(got.Series) != 1 || got.Series[0].Task != "worker-1" || len(got.Series[0].Mean) > 10 {
		t.Errorf("%v: %+v", err, got)
	}
	for _, points := range []string{"x", "0", "-1"} {
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/samples.json?points="+points, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"kind":"usage"`) {
			t.Errorf("%s points: %d %s", points, w.Code, w.Body)
		}
	}
	whole := get(t, site, "/samples.json?name=cpu_cores&task=worker-1")
	for _, points := range []string{"3000000000", "4294967297"} { // more than there are
		if text := get(t, site, "/samples.json?name=cpu_cores&task=worker-1&points="+points); text != whole {
			t.Errorf("at most %s points are %.300s", points, text)
		}
	}
}

// TestPlotsOfALongLargeJob: the pages of a job with a thousand tasks and a week of
// measurements stay small, however many checkpoints there were.
func TestPlotsOfALongLargeJob(t *testing.T) {
	const week = 7 * 24 * time.Hour
	start := time.UnixMilli(1_800_000_000_000)
	job := largeJob(1000)
	job.StartedUnixMs, job.EndedUnixMs, job.State = start.UnixMilli(), start.Add(week).UnixMilli(), proto.JobState_JOB_STATE_SUCCEEDED
	var tasks []samples.Task
	for _, k := range job.Tasks {
		tasks = append(tasks, samples.Task{Name: k.Task, Role: k.Role})
	}
	s := samples.New(job.Id, start, tasks)
	for at := time.Duration(0); at < week; at += time.Minute {
		now := start.Add(at)
		s.AddStep(now, int64(at.Seconds()), 2)
		s.AddScalars(now, "worker-0", []*proto.Scalar{{Name: "loss", Min: 1, Mean: 2 + float64(at%7), Max: 9}})
		s.AddCheckpoint(now, int64(at.Seconds()))
		for _, k := range tasks[:10] {
			s.AddUsage(now, k.Name, &proto.Heartbeat{CpuMs: (at/2 + 1).Milliseconds(), RssBytes: 1 << 30})
		}
	}
	site := web.Site{Status: fixed{job}, Samples: source(s)}
	for page, want := range map[string]string{"/": "<b>loss</b>", "/plots": "8 of 1000 tasks"} {
		if text := get(t, site, page); len(text) > 300<<10 || !strings.Contains(text, want) {
			t.Errorf("%s has %d bytes", page, len(text))
		}
	}
}

// TestNothingToPlot: before anything was measured, the page says so.
func TestNothingToPlot(t *testing.T) {
	site := web.Site{Status: fixed{&proto.JobStatus{Name: "new"}}, Samples: source(samples.New("application_1_0001", time.Now(), nil))}
	if text := get(t, site, "/plots"); !strings.Contains(text, "Nothing was measured yet") {
		t.Errorf("the page says:\n%s", text)
	}
}

// chartOf returns the chart with a title.
func chartOf(t *testing.T, page, title string) string {
	t.Helper()
	_, text, ok := strings.Cut(page, "<figcaption><b>"+title+"</b>")
	if !ok {
		t.Fatalf("there is no chart %q in:\n%s", title, page)
	}
	text, _, _ = strings.Cut(text, "</figure>")
	return text
}

// pathOf returns what the first path of a class draws.
func pathOf(t *testing.T, chart, class string) string {
	t.Helper()
	_, text, ok := strings.Cut(chart, `<path class="`+class+` c0" d="`)
	if !ok {
		t.Fatalf("there is no path of class %q in:\n%s", class, chart)
	}
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// TestAPartThatIsNone: values of a part that is not understood are not those of the whole life.
func TestAPartThatIsNone(t *testing.T) {
	site := measured(1)
	for query, want := range map[string]int{
		"span=zzz": http.StatusBadRequest, "from=soon": http.StatusBadRequest, "to=2026-13-01": http.StatusBadRequest,
		"from=2026-11-25T03:00&to=2026-11-25T02:00": http.StatusBadRequest, "from=2026-11-25T03:00&to=2026-11-25T03:00": http.StatusBadRequest,
		"": http.StatusOK, "span=5m": http.StatusOK, "span=": http.StatusOK, "from=2026-11-25T02:00": http.StatusOK,
	} {
		for _, page := range []string{"/samples.json", "/samples.csv"} {
			w := httptest.NewRecorder()
			web.Handler(site).ServeHTTP(w, httptest.NewRequest(http.MethodGet, page+"?name=loss&"+query, nil))
			if w.Code != want {
				t.Errorf("%s of %q answers %d: %s", page, query, w.Code, w.Body)
			}
		}
	}
}

// TestOddValuesAreDrawn: of one value that is a power of ten, of some that are as large as can be,
// and of what is too large, there is a line.
func TestOddValuesAreDrawn(t *testing.T) {
	start := time.UnixMilli(1_800_000_000_000)
	job := &proto.JobStatus{State: proto.JobState_JOB_STATE_SUCCEEDED, StartedUnixMs: start.UnixMilli(), EndedUnixMs: start.Add(2000 * time.Second).UnixMilli()}
	for name, value := range map[string]func(i int) float64{
		"one": func(int) float64 { return 10 }, "large": func(int) float64 { return 3e38 }, "far apart": func(i int) float64 { return 3e38 * float64(1-i%2*2) },
		"exploding": func(i int) float64 { return math.Pow(1.1, float64(i)) },
	} {
		s := samples.New("j", start, []samples.Task{{Name: "w-0", Role: "w"}})
		for i := range 2000 {
			v := value(i)
			s.AddScalars(start.Add(time.Duration(i)*time.Second), "w-0", []*proto.Scalar{{Name: name, Value: v, Min: v, Mean: v, Max: v}})
		}
		for _, page := range []string{"/plots", "/plots?log=1"} {
			text := get(t, web.Site{Status: fixed{job}, Samples: source(s)}, page)
			if name == "far apart" && page != "/plots" {
				continue // a logarithm of less than 0 there is none
			}
			if chart := chartOf(t, text, name); strings.Contains(chart, "NaN") || strings.Contains(chart, "Inf") || !strings.HasPrefix(pathOf(t, chart, "line"), "M") {
				t.Errorf("%s of %s draws:\n%s", page, name, chart)
			}
		}
	}
}

// TestAJobWithoutItsMeasurements: that they cannot be read does not hide the rest of the page.
func TestAJobWithoutItsMeasurements(t *testing.T) {
	site := web.Site{Status: fixed{lossyJob()}, Samples: func(context.Context, *proto.SamplesRequest) (*proto.JobSamples, error) {
		return nil, errors.New("samples.pb is damaged")
	}}
	if text := get(t, site, "/"); !strings.Contains(text, "samples.pb is damaged") || !strings.Contains(text, `id="incident-ps-1-0"`) {
		t.Errorf("the page says:\n%s", text)
	}
}
