package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// report is what was measured.
type report struct {
	tasks             int
	before            string // load
	started, startCPU time.Duration
	rest              float64 // of one core
	memory, peak      int64   // bytes, resident
	sizes             []string
	lost              int
	asked, back       time.Duration
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "one application master, %d tasks; load %s before, %s after\n", r.tasks, r.before, load())
	fmt.Fprintf(w, "%-44s %10s %10s\n", "", "measured", "aim")
	fmt.Fprintf(w, "%-44s %9.1f%% %10s\n", "CPU at rest, of one core", 100*r.rest, "25%")
	fmt.Fprintf(w, "%-44s %7.0f MB\n", "resident memory at rest", float64(r.memory)/1e6)
	// Of which 46 to 49 kB are gRPC's and TLS's for the connection alone (-bare).
	fmt.Fprintf(w, "%-44s %7.1f kB %10s\n", "for each task", float64(r.memory)/1e3/float64(r.tasks), "64 kB")
	fmt.Fprintf(w, "%-44s %9.2fs %10s\n", fmt.Sprintf("%d tasks lost, until all are asked for again", r.lost), r.asked.Seconds(), "1s")
	fmt.Fprintf(w, "%-44s %9.2fs\n", "until they run again", r.back.Seconds())
	fmt.Fprintf(w, "%-44s %9.1fs\n", "first start, until all run", r.started.Seconds())
	fmt.Fprintf(w, "%-44s %9.1fs\n", "CPU time of the master until then", r.startCPU.Seconds())
	fmt.Fprintf(w, "%-44s %7.0f MB\n", "highest resident memory", float64(r.peak)/1e6)
	fmt.Fprintf(w, "%s\n", strings.Join(r.sizes, ", "))
}

func (r report) printBare(w io.Writer) {
	fmt.Fprintf(w, "a gRPC server with %d connections and nothing else; load %s before, %s after\n", r.tasks, r.before, load())
	fmt.Fprintf(w, "%-44s %9.1f%%\n%-44s %7.0f MB\n%-44s %7.0f MB\n", "CPU at rest, of one core", 100*r.rest,
		"resident memory at rest", float64(r.memory)/1e6, "highest resident memory", float64(r.peak)/1e6)
}

// load is the machine's, of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// cpu is the time that a process has used, user and system: fields 14 and 15
// of /proc/PID/stat, in hundredths of a second.
func cpu(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), ") ")
	var ticks int64
	for _, f := range strings.Fields(after)[11:13] {
		n, _ := strconv.ParseInt(f, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// memory is a process's resident memory now and at its highest, in bytes.
func memory(pid int) (now, highest int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		n, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			now = n << 10
		case "VmHWM:":
			highest = n << 10
		}
	}
	return now, highest
}
