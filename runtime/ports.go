package runtime

import (
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
	"holdfast/runtime/frameworks"
)

// mostPorts is how many ports a task can have.
const mostPorts = 3

// portPlaceholder is the placeholder of the i-th port after the first: port2, port3.
func portPlaceholder(i int) string { return "port" + strconv.Itoa(i+2) }

// MorePorts returns how many ports a task of a complete spec has beside the one by which
// its peers know it: those that its command or the job's environment name, and
// TensorBoard's.
func MorePorts(spec *proto.JobSpec, task framework.Task) int {
	n := 0
	if f := frameworks.Of(spec); f.TensorBoard != nil && f.TensorBoard(spec, task) {
		n = 1
	}
	texts := append([]string{}, framework.Words(spec, task.Role)...)
	for _, v := range spec.Env {
		texts = append(texts, v)
	}
	for i := n; i < mostPorts-1; i++ {
		for _, text := range texts {
			if strings.Contains(text, "{"+portPlaceholder(i)+"}") {
				n = i + 1
			}
		}
	}
	return n
}
