package runtime

import "strings"

// Variables by which CUDA limits a process to GPUs, and numbers them.
const (
	visibleGPUs = "CUDA_VISIBLE_DEVICES"
	orderOfGPUs = "CUDA_DEVICE_ORDER"
)

// noGPU as the value of CUDA_VISIBLE_DEVICES hides all: CUDA ignores what stands after a
// number that no device has.
const noGPU = "-1"

// gpus returns the variables that limit one of a task's processes to GPUs.
func (f *Framework) gpus(a Attempt, processes int) map[string]string {
	if a.GPUs == nil {
		return nil
	}
	own := a.GPUs
	if !f.SharedGPUs {
		own = share(own, a.Local, processes)
	}
	visible := strings.Join(own, ",")
	if visible == "" {
		visible = noGPU
	}
	return map[string]string{visibleGPUs: visible, orderOfGPUs: "PCI_BUS_ID"}
}

// share returns the part of a list for one of several processes: neighbours, and as many
// for each as for any other, give or take one. Where there are more processes than items,
// some share one.
func share(list []string, process, processes int) []string {
	if len(list) == 0 {
		return nil
	}
	from := process * len(list) / processes
	return list[from:max(from+1, (process+1)*len(list)/processes)]
}
