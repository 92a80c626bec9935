package runtime_test

import (
	"strings"
	"testing"

	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// TestRanksOfHorovod: local and cross ranks are those of horovodrun, where tasks have
// different numbers of processes, too.
func TestRanksOfHorovod(t *testing.T) {
	job := spec("horovod", "worker", 2, "helper", 1, "evaluator", 1)
	job.Command = []string{"python", "train.py"}
	job.Roles[0].Processes = 2
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	ports := map[string]int{"worker-0": 1, "worker-1": 2, "helper-0": 3, "evaluator-0": 4}
	for _, c := range []struct {
		task  int
		local int
		want  string // rank, local and cross rank, each with the number of them
	}{
		{0, 0, "0/5 0/2 0/3"},
		{0, 1, "1/5 1/2 0/2"},
		{1, 1, "3/5 1/2 1/2"},
		{2, 0, "4/5 0/1 2/3"},
	} {
		task := runtime.Tasks(job)[c.task]
		_, env, err := runtime.Command(job, framework.Attempt{Task: task, Local: c.local, Ports: ports, Addresses: map[string]string{"worker-0": "127.77.0.1"}, Interface: "eth3"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range []string{"", "LOCAL_", "CROSS_"} {
			got = append(got, env["HOROVOD_"+kind+"RANK"]+"/"+env["HOROVOD_"+kind+"SIZE"])
		}
		if strings.Join(got, " ") != c.want || env["HOROVOD_HOSTNAME"] != task.Name || env["HOROVOD_GLOO_RENDEZVOUS_ADDR"] != "127.77.0.1" || env["HOROVOD_GLOO_RENDEZVOUS_PORT"] != "1" || env["HOROVOD_GLOO_IFACE"] != "eth3" {
			t.Errorf("%s, process %d: %v, want %s", task.Name, c.local, env, c.want)
		}
	}
	_, env, err := runtime.Command(job, framework.Attempt{Task: runtime.Tasks(job)[3], Ports: ports})
	if err != nil || env["HOROVOD_RANK"] != "" {
		t.Errorf("the evaluator is a rank: %v, %v", env, err)
	}
}

// TestHorovodrunIsRefused: it would start all ranks in each task.
func TestHorovodrunIsRefused(t *testing.T) {
	job := spec("", "worker", 2)
	job.Command = []string{"env/bin/horovodrun", "-np", "4", "python", "train.py"}
	if err := runtime.Complete(job); err == nil || !strings.Contains(err.Error(), "leave it and its options out") {
		t.Errorf("%v, framework %s", err, job.Framework)
	}
}
