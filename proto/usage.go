package proto

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Others returns what a task of the role gets of resource types other than memory, vcores and
// GPUs, by their names, with the unit: 1, 100G. It is nil if that is nothing.
func (r *RoleSpec) Others() map[string]string {
	var all map[string]string
	for name, a := range r.GetResources() {
		if all == nil {
			all = map[string]string{}
		}
		all[name] = fmt.Sprintf("%d%s", a.GetValue(), a.GetUnit())
	}
	return all
}

// OtherResources lists Others for people: 1 example.com/fpga.
func (r *RoleSpec) OtherResources() []string { return amounts(r.Others()) }

// OtherResources is what the task's container has of resource types other than memory, vcores
// and GPUs, in a line.
func (t *TaskStatus) OtherResources() string { return strings.Join(amounts(t.GetResources()), ", ") }

func amounts(all map[string]string) []string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, all[name]+" "+name)
	}
	return parts
}

// HasTraffic reports whether it is known what the task sends and receives, and that is
// something.
func (t *TaskStatus) HasTraffic() bool {
	return t.GetSentBytesPerSecond() > 0 || t.GetReceivedBytesPerSecond() > 0
}

// HasGPUUse reports whether it is known what the GPUs of the task do.
func (t *TaskStatus) HasGPUUse() bool { return t.GetGpuMemoryLimitBytes() > 0 }

// BusyGPUs is in how many of the task's GPUs something computes: one that does half the time
// counts for a half.
func (t *TaskStatus) BusyGPUs() float64 { return t.GetGpuPercent() / 100 * float64(t.GetGpus()) }
