package container

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/internal/proc"
)

// oomKills counts how many processes of this container's memory cgroup the
// kernel has killed because memory ran out; 0 where that cannot be read. cgroup v2:
// memory.events; v1: memory.oom_control.
func oomKills() int {
	groups, err := proc.Cgroups()
	if err != nil {
		return 0
	}
	for _, g := range groups {
		var files []string
		if len(g.Controllers) == 0 {
			files = []string{
				filepath.Join("/sys/fs/cgroup", g.Path, "memory.events"),
				filepath.Join("/sys/fs/cgroup/unified", g.Path, "memory.events"),
			}
		} else if slices.Contains(g.Controllers, "memory") {
			files = []string{
				filepath.Join("/sys/fs/cgroup/memory", g.Path, "memory.oom_control"),
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
