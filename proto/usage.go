package proto

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
