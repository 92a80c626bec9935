package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"holdfast/am/status/samples"
	"holdfast/am/web"
	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// The job whose pages are measured is as one that has run for a week: so long are its
// samples, and it has so many checkpoints.
const (
	pagesAge         = 7 * 24 * time.Hour
	pagesCheckpoints = 10000
)

// aged is a job's status, as if the job had begun earlier.
type aged struct {
	web.Source
	start time.Time
}

func (a aged) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	s, changed := a.Source.Snapshot()
	s.StartedUnixMs = a.start.UnixMilli()
	return s, changed
}

// servePages serves the pages of a job until ctx ends, and returns their address. They are
// asked for changes every few seconds, as on YARN.
func servePages(ctx context.Context, dir string, spec *proto.JobSpec, status web.Source) (string, error) {
	now := time.Now()
	a := aged{status, now.Add(-pagesAge)}
	s, _ := a.Snapshot()
	var tasks []samples.Task
	for _, t := range s.Tasks {
		tasks = append(tasks, samples.Task{Name: t.Task, Role: t.Role})
	}
	measured := samples.New(s.Id, a.start, tasks)
	for at := a.start; at.Before(now); at = at.Add(time.Minute) {
		age := at.Sub(a.start)
		measured.AddStep(at, int64(age.Seconds()), 1)
		measured.AddScalars(at, tasks[len(tasks)-1].Name, []*proto.Scalar{{Name: "loss", Min: 1, Mean: 2 + float64(age%7), Max: 9}})
		measured.AddCheckpoint(at, int64(age.Seconds()))
		for _, t := range tasks {
			measured.AddUsage(at, t.Name, &proto.Heartbeat{CpuMs: age.Milliseconds() / 2, RssBytes: 1 << 30})
		}
	}
	checkpoints := filepath.Join(dir, "checkpoints")
	for i := range pagesCheckpoints {
		d := filepath.Join(checkpoints, fmt.Sprintf("step-%d", i+1))
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(d, "COMMITTED"), nil, 0o644); err != nil {
			return "", err
		}
	}
	open := func(_ context.Context, uri string) (store.Store, error) { return store.NewLocal(uri) }
	browser := inspect.NewBrowser([]inspect.Directory{{Path: "./checkpoints", URI: checkpoints}}, open)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	pages := &http.Server{Handler: web.Handler(web.Site{
		Status: a, Spec: spec, Checkpoints: browser, Polled: true,
		Samples: func(_ context.Context, r *proto.SamplesRequest) (*proto.JobSamples, error) {
			return measured.Select(r), nil
		},
	})}
	go func() { _ = pages.Serve(listener) }() // it ends with ctx
	context.AfterFunc(ctx, func() { pages.Close() })
	return "http://" + listener.Addr().String() + "/", nil
}

// pageReport is what pages cost a browser, and the master for so many that are open.
type pageReport struct {
	open   int
	pages  []pageCost
	cpu    float64 // of one core, more than without
	memory int64   // bytes, more than before any page was asked for, on average
}

// pageCost is what it takes to fetch a page: the median of several tries.
type pageCost struct {
	path  string
	first time.Duration // until its first byte
	bytes int64
}

// What is aimed at.
const (
	firstAim      = 100 * time.Millisecond
	pageBytesAim  = 300e3
	pagesCPUAim   = 0.05
	pagesBytesAim = 20e6
)

// measurePages fetches each page, and then keeps some of the job's open for a while. Idle, the
// master uses so much of a core, and so much memory.
func measurePages(ctx context.Context, pid int, address string, open int, idle float64, idleMemory int64, d time.Duration) (pageReport, error) {
	r := pageReport{open: open}
	// The first listing of a directory is made while its page waits.
	if _, _, err := fetchPage(ctx, address+"checkpoints"); err != nil {
		return r, err
	}
	for _, path := range []string{"", "plots", "checkpoints"} {
		const tries = 11
		var firsts []time.Duration
		var size int64
		for i := range tries {
			// Each is made anew: what others have just asked for in the same way would be shared.
			first, text, err := fetchPage(ctx, fmt.Sprintf("%s%s?try=%d", address, path, i))
			if err != nil {
				return r, err
			}
			firsts, size = append(firsts, first), max(size, int64(len(text)))
		}
		slices.Sort(firsts)
		r.pages = append(r.pages, pageCost{path, firsts[tries/2], size})
	}
	from, used := time.Now(), cpu(pid)
	opened, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, open)
	var all sync.WaitGroup
	for i := range open {
		all.Go(func() {
			if err := keepOpen(opened, address, time.Duration(i)*time.Second/time.Duration(open)); err != nil {
				errs <- err
			}
		})
	}
	with, err := usualMemory(ctx, pid, d)
	r.cpu = float64(cpu(pid)-used)/float64(time.Since(from)) - idle
	r.memory = with - idleMemory
	cancel()
	all.Wait()
	if err != nil {
		return r, err
	}
	select {
	case err := <-errs:
		return r, err
	default:
		return r, nil
	}
}

var pacePattern = regexp.MustCompile(`data-updates="poll" data-pace="(\d+)"`)

// keepOpen does what the script of a job's page does, from a while after now on until ctx
// ends: it fetches the page again and again, as often as that says.
func keepOpen(ctx context.Context, address string, after time.Duration) error {
	for wait := after; sleep(ctx, wait) == nil; {
		_, text, err := fetchPage(ctx, address)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		m := pacePattern.FindSubmatch(text)
		if m == nil {
			return fmt.Errorf("%s does not say how often it is to be fetched", address)
		}
		ms, _ := strconv.Atoi(string(m[1]))
		wait = max(3*time.Second, time.Duration(ms)*time.Millisecond)
	}
	return nil
}

// fetchPage returns a page, and how long its first byte took, on a connection of its own.
func fetchPage(ctx context.Context, address string) (first time.Duration, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Close = true
	begin := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	byteRead := make([]byte, 1)
	if _, err := io.ReadFull(resp.Body, byteRead); err != nil {
		return 0, nil, err
	}
	first = time.Since(begin)
	text, err = io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		err = cmp.Or(err, fmt.Errorf("%s answers %s", address, resp.Status))
	}
	return first, append(byteRead, text...), err
}

func (r pageReport) print(w io.Writer) {
	fmt.Fprintf(w, "its pages, after %d days of samples and with %d checkpoints\n", pagesAge/(24*time.Hour), pagesCheckpoints)
	for _, p := range r.pages {
		fmt.Fprintf(w, "%-44s %7.0f ms %10s\n", "/"+p.path+", first byte", float64(p.first.Microseconds())/1e3, fmt.Sprintf("%d ms", firstAim.Milliseconds()))
		fmt.Fprintf(w, "%-44s %7.0f kB %10s\n", "    in all", float64(p.bytes)/1e3, fmt.Sprintf("%.0f kB", pageBytesAim/1e3))
	}
	fmt.Fprintf(w, "%-44s %9.1f%% %10s\n", fmt.Sprintf("%d open pages: CPU, of one core", r.open), 100*r.cpu, fmt.Sprintf("%.0f%%", 100*pagesCPUAim))
	fmt.Fprintf(w, "%-44s %7.1f MB %10s\n", "    resident memory", float64(r.memory)/1e6, fmt.Sprintf("%.0f MB", pagesBytesAim/1e6))
}
