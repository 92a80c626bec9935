package container

import (
	"context"
	"sync/atomic"
	"time"

	"holdfast/container/gpu"
	"holdfast/container/proctree"
	"holdfast/container/traffic"
	"holdfast/proto"
)

// usage measures what the task uses.
type usage struct {
	traffic traffic.Meter
	gpus    atomic.Pointer[gpu.Use] // nil: not known
}

// watchGPUs measures what the GPUs of a claim do until ctx ends.
func (u *usage) watchGPUs(ctx context.Context, claim *gpu.Claim) {
	claim.Watch(ctx, func(use gpu.Use) { u.gpus.Store(&use) })
}

// report puts into a heartbeat what the task's processes use.
func (u *usage) report(b *proto.Heartbeat, now time.Time, processes []int) {
	cpu, bytes := proctree.Usage(processes...)
	b.RssBytes, b.CpuMs, b.IoBytes = proctree.RSS(processes...), cpu.Milliseconds(), bytes
	if sent, received, ok := u.traffic.Measure(now, processes); ok {
		b.SentBytesPerSecond, b.ReceivedBytesPerSecond = &sent, &received
	}
	if g := u.gpus.Load(); g != nil {
		b.Gpu = &proto.GPUUse{Percent: g.Percent, MemoryBytes: g.Memory, MemoryLimitBytes: g.Limit}
	}
}
