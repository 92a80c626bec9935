package gpu

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/failure"
	"holdfast/internal/backoff"
)

// Claim is a set of GPUs that no other task of the node uses. A nil Claim has none.
type Claim struct {
	Devices []Device

	sockets []int
}

// Names returns the devices as CUDA_VISIBLE_DEVICES names them; nil for a nil Claim.
func (c *Claim) Names() []string {
	if c == nil {
		return nil
	}
	names := make([]string, 0, len(c.Devices))
	for _, d := range c.Devices {
		names = append(names, d.Name)
	}
	return names
}

// Release gives the devices up. It may be called again.
func (c *Claim) Release() {
	if c == nil {
		return
	}
	for _, fd := range c.sockets {
		unix.Close(fd)
	}
	c.sockets = nil
}

// claimLimit is how long a claim waits for GPUs that another task has: that of the
// container which it replaces may be ending.
const claimLimit = 20 * time.Second

// Take claims GPUs, as many as asked for. It waits for a while for those that other tasks
// have, and then fails, since another node may have free ones.
func Take(ctx context.Context, devices []Device, count int) (*Claim, error) {
	if count > len(devices) {
		return nil, failure.Node(fmt.Errorf("the task asks for %d GPUs, and its container sees %d on this node", count, len(devices)))
	}
	ctx, cancel := context.WithTimeout(ctx, claimLimit)
	defer cancel()
	order := prefer(devices, computing(ctx))
	for wait := backoff.New(50*time.Millisecond, time.Second); ; {
		c, err := try(order, count)
		if c != nil || err != nil {
			return c, err
		}
		if !wait.Wait(ctx) {
			return nil, failure.Node(fmt.Errorf("the task asks for %d of the %d GPUs that its container sees on this node, and other tasks have claimed too many of them: have YARN count the GPUs that the node has, or leave the number out to share them", count, len(devices)))
		}
	}
}

// try claims the first free devices; nil: there are too few.
func try(devices []Device, count int) (*Claim, error) {
	c := &Claim{}
	for _, d := range devices {
		if len(c.Devices) == count {
			break
		}
		fd, err := bind("holdfast-gpu-" + d.ID)
		switch {
		case errors.Is(err, unix.EADDRINUSE):
			continue
		case err != nil:
			c.Release()
			return nil, failure.Node(fmt.Errorf("claiming the GPU %s: %w", d.ID, err))
		}
		c.Devices, c.sockets = append(c.Devices, d), append(c.sockets, fd)
	}
	if len(c.Devices) < count {
		c.Release()
		return nil, nil
	}
	slices.SortFunc(c.Devices, byID)
	return c, nil
}

// bind returns a socket with a name in the abstract namespace.
func bind(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// prefer puts those devices first on which nothing computes.
func prefer(devices []Device, busy map[string]bool) []Device {
	order := slices.Clone(devices)
	slices.SortStableFunc(order, func(a, b Device) int {
		switch {
		case busy[a.ID] == busy[b.ID]:
			return 0
		case busy[b.ID]:
			return -1
		}
		return 1
	})
	return order
}

// queryLimit bounds how long nvidia-smi may take, which is seconds where a driver is not
// loaded yet.
const queryLimit = 5 * time.Second

// computing returns the GPUs on which programs compute, by their IDs; none where nvidia-smi
// is not installed or fails.
func computing(ctx context.Context) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nvidia-smi", "--query-compute-apps=gpu_bus_id", "--format=csv,noheader").Output()
	if err != nil {
		return nil
	}
	return parseComputing(string(out))
}

// parseComputing parses a line for each program: the PCI address of its GPU.
func parseComputing(text string) map[string]bool {
	busy := map[string]bool{}
	for line := range strings.Lines(text) {
		if address, ok := shortAddress(strings.TrimSpace(line)); ok {
			busy[address] = true
		}
	}
	return busy
}

// shortAddress returns a PCI address as the driver's directories have it, whose domain has four
// digits, where nvidia-smi says eight.
func shortAddress(text string) (address string, ok bool) {
	domain, rest, ok := strings.Cut(strings.ToLower(text), ":")
	if !ok || len(domain) < 4 {
		return "", false
	}
	return domain[len(domain)-4:] + ":" + rest, true
}
