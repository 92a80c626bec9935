package gpu

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Use is what some GPUs are doing, by whatever program.
type Use struct {
	Percent       float64 // of the time in which something computes on one of them: their mean
	Memory, Limit int64   // that is in use and that there is, of all of them, in bytes
}

const (
	// useEvery is the time between two looks at GPUs at least, and useCost that in terms of the
	// time that a look takes, which is seconds where the driver is loaded for each.
	useEvery = 10 * time.Second
	useCost  = 50
)

// Watch calls tell with what the claim's GPUs do, every now and then until ctx ends. It returns
// where that cannot be found out.
func (c *Claim) Watch(ctx context.Context, tell func(Use)) {
	if c == nil || len(c.Devices) == 0 {
		return
	}
	for {
		begin := time.Now()
		u, ok := c.use(ctx)
		if !ok {
			return
		}
		tell(u)
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(useEvery, useCost*time.Since(begin))):
		}
	}
}

// use asks nvidia-smi; ok is false where that is not installed, fails, or knows none of the GPUs.
func (c *Claim) use(ctx context.Context) (u Use, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=gpu_bus_id,uuid,utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits").Output()
	if err != nil {
		return Use{}, false
	}
	return parseUse(string(out), c.Devices)
}

// parseUse parses a line for each GPU of the node: its PCI address and UUID, percent, and the
// memory in use and in all, in MiB. What a GPU does not tell is no number.
func parseUse(text string, devices []Device) (u Use, ok bool) {
	own := map[string]bool{}
	for _, d := range devices {
		own[d.ID] = true
		if d.UUID != "" {
			own[d.UUID] = true
		}
	}
	computing, storing := 0, 0 // GPUs that tell
	for line := range strings.Lines(text) {
		fields := strings.Split(line, ",")
		if len(fields) != 5 {
			continue
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		address, known := shortAddress(fields[0])
		if !own[fields[1]] && !(known && own[address]) {
			continue
		}
		if percent, err := strconv.ParseFloat(fields[2], 64); err == nil {
			u.Percent += percent
			computing++
		}
		used, err := strconv.ParseInt(fields[3], 10, 64)
		total, err2 := strconv.ParseInt(fields[4], 10, 64)
		if err == nil && err2 == nil {
			u.Memory += used << 20
			u.Limit += total << 20
			storing++
		}
	}
	u.Percent /= float64(max(1, computing))
	return u, storing > 0
}
