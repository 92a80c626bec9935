package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"holdfast/internal/proc"
)

// report is what was measured.
type report struct {
	tasks             int
	before            string // load
	started, startCPU time.Duration
	rest              float64 // of one core
	memory, peak      int64   // bytes, resident
	again             int     // agents that had lost their connection until then
	sizes             []string
	lost              int
	asked, back       time.Duration
}

func (r report) print(w io.Writer) {
	fmt.Fprintf(w, "one application master, %d tasks; load %s before, %s after\n", r.tasks, r.before, load())
	fmt.Fprintf(w, "%-44s %10s %10s\n", "", "measured", "aim")
	fmt.Fprintf(w, "%-44s %9.1f%% %10s\n", "idle CPU, of one core", 100*r.rest, "25%")
	fmt.Fprintf(w, "%-44s %7.0f MB\n", "resident memory, idle", float64(r.memory)/1e6)
	// Of which 46 to 49 kB are gRPC's and TLS's for the connection alone (-bare).
	fmt.Fprintf(w, "%-44s %7.1f kB %10s\n", "for each task", r.perTask()/1e3, fmt.Sprintf("%.0f kB", taskAim/1e3))
	if r.lost > 0 {
		r.printLoss(w)
	}
	fmt.Fprintf(w, "%-44s %9.1fs\n", "first start, until all run", r.started.Seconds())
	fmt.Fprintf(w, "%-44s %9.1fs\n", "CPU time of the master until then", r.startCPU.Seconds())
	fmt.Fprintf(w, "%-44s %7.0f MB\n", "highest resident memory", float64(r.peak)/1e6)
	fmt.Fprintf(w, "%s\n", strings.Join(r.sizes, ", "))
}

func (r report) printLoss(w io.Writer) {
	fmt.Fprintf(w, "%-44s %9.2fs %10s\n", fmt.Sprintf("%d tasks lost, until all are asked for again", r.lost), r.asked.Seconds(), "1s")
	fmt.Fprintf(w, "%-44s %9.2fs\n", "until they run again", r.back.Seconds())
}

// taskAim is how much memory a task may take of the master's, in bytes.
const taskAim = 64e3

func (r report) perTask() float64 { return float64(r.memory) / float64(r.tasks) }

// check fails if a task takes too much memory.
func (r report) check() error {
	if r.perTask() > taskAim {
		return fmt.Errorf("the master takes %.1f kB of memory for each of %d tasks, and it may be %.0f kB (where agents came again, the machine was too busy for a measurement)", r.perTask()/1e3, r.tasks, taskAim/1e3)
	}
	if r.again > 0 {
		return fmt.Errorf("%d agents lost their connection and came again, which nothing gave them reason to but a machine that was too busy", r.again)
	}
	return nil
}

func (r report) printBare(w io.Writer) {
	fmt.Fprintf(w, "a gRPC server with %d connections and nothing else; load %s before, %s after\n", r.tasks, r.before, load())
	fmt.Fprintf(w, "%-44s %9.1f%%\n%-44s %7.0f MB\n%-44s %7.0f MB\n", "idle CPU, of one core", 100*r.rest,
		"resident memory, idle", float64(r.memory)/1e6, "highest resident memory", float64(r.peak)/1e6)
}

// load is the machine's, of the last minute.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Fields(string(text))[0]
}

// cpu is the time that a process has used, user and system.
func cpu(pid int) time.Duration {
	s, _ := proc.ReadStat(pid)
	return s.CPU
}

// usualMemory returns a process's mean resident memory in the next d, in bytes: it grows until the next
// collection, and then again.
func usualMemory(ctx context.Context, pid int, d time.Duration) (int64, error) {
	var sum, n int64
	for end := time.Now().Add(d); time.Now().Before(end); n++ {
		now, _ := memory(pid)
		sum += now
		if err := sleep(ctx, time.Second); err != nil {
			return 0, err
		}
	}
	return sum / max(1, n), nil
}

// memory is a process's resident memory now and at its highest, in bytes.
func memory(pid int) (now, highest int64) {
	status, _ := proc.ReadStatus(pid)
	return status.Bytes("VmRSS"), status.Bytes("VmHWM")
}
