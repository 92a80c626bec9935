package proc

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Threads returns the numbers of a process's threads.
func Threads(pid int) ([]int, error) { return numbers(file(pid, "task")) }

// Resource is one for which the kernel tells how much processes wait for it.
type Resource string

// The resources.
const (
	OfCPU    Resource = "cpu"
	OfMemory Resource = "memory"
	OfIO     Resource = "io"
)

// Pressure returns the share of the last minute in which at least one process had to wait for a
// resource: of those of this process's control group if it is in one that has that, as with
// cgroup v2, or else of this machine. It fails where the kernel does not tell
// (Documentation/accounting/psi.rst).
func Pressure(r Resource) (share float64, own bool, err error) {
	groups, _ := Cgroups()
	for _, g := range groups {
		if len(g.Controllers) > 0 || g.Path == "/" { // of v1, or of all
			continue
		}
		if b, err := os.ReadFile(filepath.Join("/sys/fs/cgroup", g.Path, string(r)+".pressure")); err == nil {
			share, err := ParsePressure(b)
			return share, true, err
		}
	}
	b, err := os.ReadFile("/proc/pressure/" + string(r))
	if err != nil {
		return 0, false, err
	}
	share, err = ParsePressure(b)
	return share, false, err
}

// ParsePressure returns the mean of a minute in a file of pressure stall information, of when
// some processes waited: "some avg10=0.12 avg60=0.50 avg300=0.16 total=1234".
func ParsePressure(b []byte) (share float64, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		rest, some := strings.CutPrefix(lines.Text(), "some ")
		if !some {
			continue
		}
		for _, f := range strings.Fields(rest) {
			if v, is := strings.CutPrefix(f, "avg60="); is {
				percent, err := strconv.ParseFloat(v, 64)
				return percent / 100, err
			}
		}
	}
	return 0, errors.New("no pressure stall information in the file")
}

// Load returns the mean number of processes of this machine that have run, or waited for a CPU
// or a disk, in the last minute.
func Load() (float64, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), " ")
	return strconv.ParseFloat(first, 64)
}
