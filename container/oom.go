package container

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// oomKills counts how many processes of this container's memory cgroup the
// kernel has killed for want of memory; 0 where that cannot be read. cgroup v2:
// memory.events; v1: memory.oom_control.
func oomKills() int {
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // ID:CONTROLLERS:PATH
		if len(f) != 3 {
			continue
		}
		var files []string
		if f[1] == "" {
			files = []string{
				filepath.Join("/sys/fs/cgroup", f[2], "memory.events"),
				filepath.Join("/sys/fs/cgroup/unified", f[2], "memory.events"),
			}
		} else if strings.Contains(","+f[1]+",", ",memory,") {
			files = []string{
				filepath.Join("/sys/fs/cgroup/memory", f[2], "memory.oom_control"),
				"/sys/fs/cgroup/memory/memory.oom_control", // in a cgroup namespace
			}
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(b)) {
				if rest, ok := strings.CutPrefix(line, "oom_kill "); ok {
					n, _ := strconv.Atoi(strings.TrimSpace(rest))
					return n
				}
			}
		}
	}
	return 0
}
