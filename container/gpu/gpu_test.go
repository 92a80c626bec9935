package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/failure"
)

// node makes the directories of a node with GPUs, given by their minor numbers and PCI
// addresses. Those of denied cannot be opened.
func node(t *testing.T, addresses map[int]string, denied ...int) Node {
	t.Helper()
	n := Node{Proc: filepath.Join(t.TempDir(), "gpus"), Dev: t.TempDir(), Open: func(file string) error {
		for _, minor := range denied {
			if strings.HasSuffix(file, fmt.Sprintf("/nvidia%d", minor)) {
				return unix.EPERM
			}
		}
		return nil
	}}
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range []string{"nvidiactl", "nvidia-uvm", "nvidia-modeset", "null"} {
		write(filepath.Join(n.Dev, other), "")
	}
	for minor, address := range addresses {
		write(filepath.Join(n.Dev, fmt.Sprintf("nvidia%d", minor)), "")
		if address != "" {
			write(filepath.Join(n.Proc, address, "information"), fmt.Sprintf("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 155\nGPU UUID: \t GPU-%d0000000-1111\nBus Location: \t %s\nDevice Minor: \t %d\nGPU Excluded:\t No\n", minor, address, minor))
		}
	}
	return n
}

func names(devices []Device) string {
	var list []string
	for _, d := range devices {
		list = append(list, d.Name+"="+d.ID)
	}
	return strings.Join(list, " ")
}

// TestDevicesThatCanBeOpened: CUDA numbers the GPUs by their PCI addresses, without those
// that a device cgroup hides.
func TestDevicesThatCanBeOpened(t *testing.T) {
	all := map[int]string{0: "0000:C1:00.0", 1: "0000:04:00.0", 2: "0000:84:00.0"}
	for _, c := range []struct {
		node Node
		want string
	}{
		{node(t, nil), ""},
		{Node{Proc: "/nowhere", Dev: "/nowhere"}, ""},
		{node(t, all), "0=0000:04:00.0 1=0000:84:00.0 2=0000:c1:00.0"},
		{node(t, all, 1), "0=0000:84:00.0 1=0000:c1:00.0"},
		{node(t, all, 0, 1, 2), ""},
		{node(t, map[int]string{10: "", 9: ""}), "0=minor-009 1=minor-010"},
	} {
		if got := names(c.node.Devices()); got != c.want {
			t.Errorf("the devices are %q, want %q", got, c.want)
		}
	}
}

// TestGiven: what YARN, Docker or the NodeManager's own environment confines a container to.
func TestGiven(t *testing.T) {
	three := node(t, map[int]string{0: "0000:04:00.0", 1: "0000:84:00.0", 2: "0000:c1:00.0"}).Devices()
	for _, c := range []struct{ environ, want string }{
		{"", "0 1 2"},
		{"CUDA_VISIBLE_DEVICES=2,0", "2 0"},
		{"CUDA_VISIBLE_DEVICES=", ""},
		{"CUDA_VISIBLE_DEVICES=-1", ""},
		{"CUDA_VISIBLE_DEVICES=1,7,0", "1"}, // as CUDA reads it
		{"CUDA_VISIBLE_DEVICES=GPU-10000000-1111", "1"},
		{"CUDA_VISIBLE_DEVICES=GPU-2", "2"},
		{"CUDA_VISIBLE_DEVICES=MIG-9a", "MIG-9a"},
		{"NVIDIA_VISIBLE_DEVICES=all", "0 1 2"},
		{"NVIDIA_VISIBLE_DEVICES=void", "0 1 2"},
		{"NVIDIA_VISIBLE_DEVICES=1", "1"},
		{"NVIDIA_VISIBLE_DEVICES=3,5,6", "0 1 2"}, // of a host with more, which Docker hides
		{"NVIDIA_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=0", "0"},
	} {
		var got []string
		for _, d := range Given(three, strings.Fields(c.environ)) {
			got = append(got, d.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q gives %q, want %q", c.environ, got, c.want)
		}
	}
}

// devices are some that no other test and no real task claims.
func devices(t *testing.T, count int) []Device {
	var list []Device
	for i := range count {
		list = append(list, Device{Name: fmt.Sprint(i), ID: fmt.Sprintf("%s-%d-%d", t.Name(), os.Getpid(), i)})
	}
	return list
}

// TestNoTwoTasksShareAGPU: each claims others, until too few are left, and what one gives up
// the next can have.
func TestNoTwoTasksShareAGPU(t *testing.T) {
	all := devices(t, 5)
	first, err := Take(t.Context(), all, 2)
	if err != nil || !slices.Equal(first.Names(), []string{"0", "1"}) {
		t.Fatalf("the first task has %q, %v", first.Names(), err)
	}
	second, err := Take(t.Context(), all, 2)
	if err != nil || !slices.Equal(second.Names(), []string{"2", "3"}) {
		t.Fatalf("the second task has %q, %v", second.Names(), err)
	}
	defer second.Release()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		_, err := Take(t.Context(), all, 2)
		if err == nil || !failure.Message(err).NodeSpecific || time.Since(begun) < claimLimit {
			t.Errorf("a third task, after %s: %v", time.Since(begun), err)
		}
	})
	one, err := Take(t.Context(), all, 1) // what the third had is free again
	if err != nil || !slices.Equal(one.Names(), []string{"4"}) {
		t.Errorf("a small task has %q, %v", one.Names(), err)
	}
	defer one.Release()
	begun := make(chan *Claim)
	go func() {
		c, _ := Take(context.Background(), all, 2)
		begun <- c
	}()
	first.Release()
	first.Release()
	if c := <-begun; !slices.Equal(c.Names(), []string{"0", "1"}) {
		t.Errorf("the task that waited has %q", c.Names())
	} else {
		c.Release()
	}
	if _, err := Take(t.Context(), all, 6); err == nil || !strings.Contains(err.Error(), "asks for 6 GPUs, and its container sees 5") {
		t.Errorf("more than there are: %v", err)
	}
}

// TestATaskWithoutGPUsSeesNone: it has an empty list, not none.
func TestATaskWithoutGPUsSeesNone(t *testing.T) {
	c, err := Take(t.Context(), devices(t, 1), 0)
	if err != nil || c.Names() == nil || len(c.Names()) != 0 {
		t.Errorf("it has %#v, %v", c.Names(), err)
	}
	if none := (*Claim)(nil); none.Names() != nil {
		t.Error("no claim limits a task")
	}
}

// TestIdleGPUsFirst: programs that know of no claim compute on some.
func TestIdleGPUsFirst(t *testing.T) {
	busy := parseComputing("00000000:04:00.0\n00000000:C1:00.0\n00000000:04:00.0\n\nN/A\n")
	all := node(t, map[int]string{0: "0000:04:00.0", 1: "0000:84:00.0", 2: "0000:c1:00.0", 3: "0000:e1:00.0"}).Devices()
	var got []string
	for _, d := range prefer(all, busy) {
		got = append(got, d.Name)
	}
	if want := []string{"1", "3", "0", "2"}; !slices.Equal(got, want) {
		t.Errorf("the order is %q, want %q", got, want)
	}
}

// TestUse: of all GPUs of the node, what those of the claim do, as nvidia-smi says it.
func TestUse(t *testing.T) {
	const said = "00000000:17:00.0, GPU-5a1b7c2e-6f34-0a6d-1d43-2f8a9e7c0b11, 87, 61234, 81559\n" +
		"00000000:65:00.0, GPU-6b1b7c2e-6f34-0a6d-1d43-2f8a9e7c0b12, 33, 1000, 81559\n" +
		"00000000:CA:00.0, GPU-7c1b7c2e-6f34-0a6d-1d43-2f8a9e7c0b13, [N/A], 2000, 81559\n" + // divided (MIG)
		"00000000:E3:00.0, GPU-8d1b7c2e-6f34-0a6d-1d43-2f8a9e7c0b14, [Unknown Error], [Unknown Error], [Unknown Error]\n"
	for _, x := range []struct {
		devices []Device
		want    Use
		ok      bool
	}{
		{[]Device{{ID: "0000:17:00.0"}}, Use{87, 61234 << 20, 81559 << 20}, true},
		{[]Device{{ID: "0000:17:00.0"}, {ID: "0000:65:00.0"}}, Use{60, 62234 << 20, 2 * 81559 << 20}, true},
		{[]Device{{ID: "minor-002", UUID: "GPU-7c1b7c2e-6f34-0a6d-1d43-2f8a9e7c0b13"}, {ID: "0000:65:00.0"}}, Use{33, 3000 << 20, 2 * 81559 << 20}, true},
		{[]Device{{ID: "0000:e3:00.0"}}, Use{}, false},
		{[]Device{{ID: "0000:01:00.0"}}, Use{}, false},
	} {
		if u, ok := parseUse(said, x.devices); u != x.want || ok != x.ok {
			t.Errorf("%v: %+v %v, want %+v %v", x.devices, u, ok, x.want, x.ok)
		}
	}
	for _, bad := range []string{"", "No devices were found\n", ",,,,\n", "1:1,2\n"} {
		if u, ok := parseUse(bad, []Device{{ID: "0000:17:00.0"}}); ok {
			t.Errorf("%q is %+v", bad, u)
		}
	}
}
