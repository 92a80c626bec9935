package browser

import (
	"context"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"holdfast/am/web"
	"holdfast/proto"
)

// still is a job to which nothing happens.
type still struct{ *proto.JobStatus }

func (s still) Snapshot() (*proto.JobStatus, <-chan struct{}) { return s.JobStatus, nil }

// TestOtherResourcesOnThePages: what tasks have of resource types of a cluster's own, which jobs
// on this machine have not.
func TestOtherResourcesOnThePages(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	worker := &proto.RoleSpec{Name: "worker", Count: 1, MemoryMb: 2048, Vcores: 2, Gpus: 1, Resources: map[string]*proto.Amount{
		"example.com/fpga": {Value: 1}, "example.com/disk": {Value: 100, Unit: "G"}, "example.com/license-of-a-solver-with-a-long-name": {Value: 3},
	}}
	spec := &proto.JobSpec{Name: "synthesis", Framework: "none", Command: []string{"python3", "train.py"}, Roles: []*proto.RoleSpec{{Name: "ps", Count: 1, MemoryMb: 512, Vcores: 1}, worker}}
	status := &proto.JobStatus{Id: "application_1_0001", Name: spec.Name, State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1}
	for _, r := range spec.Roles {
		status.Tasks = append(status.Tasks, &proto.TaskStatus{
			Task: r.Name + "-0", Role: r.Name, State: proto.TaskState_TASK_STATE_RUNNING, Node: "node-1", Vcores: r.Vcores, Gpus: r.Gpus, RssBytes: 300 << 20,
			MemoryLimitBytes: r.MemoryMb << 20, MemoryPeakBytes: 400 << 20, CpuCores: 0.5, Resources: r.Others(),
		})
	}
	server := httptest.NewServer(web.Handler(web.Site{Status: still{status}, Spec: spec}))
	defer server.Close()
	b := newBrowser(ctx, t, true)
	for _, page := range []struct{ name, path, place, others string }{
		{"resources-configuration", "/configuration", ".options tr:last-child td", "resourceexample.com/disk=100G, example.com/fpga=1, example.com/license-of-a-solver-with-a-long-name=3"},
		{"resources-task", "/task?task=worker-0", "#task .facts", "100G example.com/disk, 1 example.com/fpga, 3 example.com/license-of-a-solver-with-a-long-name"},
	} {
		b.open(server.URL + page.path)
		b.waitFor(page.place, page.others)
		b.picture(page.name)
		b.do(chromedp.EmulateViewport(390, 844))
		b.until("the page to fit a phone", `document.documentElement.scrollWidth <= 390`)
		b.picture(page.name + "-phone")
		b.do(chromedp.EmulateViewport(1280, 900))
	}
}
