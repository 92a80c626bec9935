// Package gpu decides which GPUs of a node a task uses, so that no two tasks of one node
// share one by accident, whether or not YARN isolates its containers.
//
// # What is there
//
// The GPUs of a container are those of NVIDIA's that it may open: where YARN isolates its
// containers, by device cgroups or by Docker, these are the ones that it gave. A container
// whose environment has CUDA_VISIBLE_DEVICES or NVIDIA_VISIBLE_DEVICES is confined to those
// further.
//
// # Claims
//
// A claim on a GPU is a socket that is bound to a name in the abstract namespace of
// unix(7), which is made of the GPU's address on the PCI bus. It holds between tasks of any
// job and any user on the node, needs no file that another user could not open or remove,
// and ends with the process that made it. Of the GPUs that nobody has claimed, those are
// taken first on which no other program computes.
package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Device is a GPU that this container may use.
type Device struct {
	Name string // in CUDA_VISIBLE_DEVICES, when CUDA_DEVICE_ORDER is PCI_BUS_ID
	ID   string // the same for every container of the node
	UUID string // empty where the driver does not report it
}

// Node is where devices are looked for.
type Node struct {
	Proc string // the driver's directory below /proc
	Dev  string
	// Open reports whether a device file can be opened.
	Open func(file string) error
}

// Here is the node that this process runs on.
var Here = Node{
	Proc: "/proc/driver/nvidia/gpus", Dev: "/dev",
	Open: func(file string) error {
		fd, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	},
}

// deviceFile is that of a GPU, with its minor number.
var deviceFile = regexp.MustCompile(`^nvidia([0-9]+)$`)

// Devices returns the GPUs of NVIDIA's that this container may open, in the order of their
// PCI addresses, by which CUDA numbers them. It is empty where there are none.
func (n Node) Devices() []Device {
	var minors []int
	for _, minor := range n.minors() {
		if n.Open(filepath.Join(n.Dev, fmt.Sprintf("nvidia%d", minor))) == nil {
			minors = append(minors, minor)
		}
	}
	known := n.drivers()
	devices := make([]Device, 0, len(minors))
	for _, minor := range minors {
		d, ok := known[minor]
		if !ok {
			d.ID = fmt.Sprintf("minor-%03d", minor)
		}
		devices = append(devices, d)
	}
	slices.SortFunc(devices, byID)
	for i := range devices {
		devices[i].Name = strconv.Itoa(i)
	}
	return devices
}

// Installed returns the number of GPUs of NVIDIA's that the node has, as far as can be seen
// from here, whether or not they may be opened.
func (n Node) Installed() int { return max(len(n.minors()), len(n.drivers())) }

// minors returns the minor numbers of the GPUs that have a device file here, in ascending
// order.
func (n Node) minors() []int {
	files, _ := os.ReadDir(n.Dev)
	var minors []int
	for _, f := range files {
		if m := deviceFile.FindStringSubmatch(f.Name()); m != nil {
			minor, _ := strconv.Atoi(m[1])
			minors = append(minors, minor)
		}
	}
	slices.Sort(minors)
	return minors
}

func byID(a, b Device) int { return strings.Compare(a.ID, b.ID) }

// drivers returns the GPUs that the driver lists, by their minor numbers. Each has a
// directory, named for its PCI address, with a file of lines NAME: VALUE.
func (n Node) drivers() map[int]Device {
	devices := map[int]Device{}
	addresses, _ := os.ReadDir(n.Proc)
	for _, a := range addresses {
		text, err := os.ReadFile(filepath.Join(n.Proc, a.Name(), "information"))
		if err != nil {
			continue
		}
		d, minor := Device{ID: strings.ToLower(a.Name())}, -1
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimSpace(value); strings.TrimSpace(name) {
			case "Device Minor":
				if n, err := strconv.Atoi(value); err == nil {
					minor = n
				}
			case "GPU UUID":
				if !strings.Contains(value, "?") { // it is not known before the GPU is used
					d.UUID = value
				}
			}
		}
		if minor >= 0 {
			devices[minor] = d
		}
	}
	return devices
}

// Given returns those of the devices to which the environment of the container confines it.
func Given(devices []Device, environ []string) []Device {
	vars := map[string]string{}
	for _, kv := range environ {
		name, v, _ := strings.Cut(kv, "=")
		vars[name] = v
	}
	if list, ok := vars["CUDA_VISIBLE_DEVICES"]; ok {
		return visible(devices, list)
	}
	list := vars["NVIDIA_VISIBLE_DEVICES"]
	switch list {
	case "", "all", "none", "void":
		return devices // what can be opened is what was given
	}
	if given := len(strings.Split(list, ",")); given >= len(devices) {
		return devices // it numbers the GPUs of the host, of which the others are hidden
	}
	return visible(devices, list)
}

// visible returns the devices of a list as in CUDA_VISIBLE_DEVICES: numbers and (beginnings
// of) UUIDs, up to the first that no device has. What is neither, such as a part of a GPU
// (MIG), is a device of its own.
func visible(devices []Device, list string) []Device {
	chosen := []Device{}
	for _, word := range strings.Split(list, ",") {
		word = strings.TrimSpace(word)
		number, err := strconv.Atoi(word)
		switch {
		case word == "" || err == nil && (number < 0 || number >= len(devices)):
			return chosen
		case err == nil:
			chosen = append(chosen, devices[number])
		default:
			d := Device{Name: word, ID: strings.ToLower(word), UUID: word}
			if i := slices.IndexFunc(devices, func(d Device) bool { return strings.HasPrefix(word, "GPU-") && strings.HasPrefix(d.UUID, word) }); i >= 0 {
				d = devices[i]
			}
			chosen = append(chosen, d)
		}
	}
	return chosen
}
