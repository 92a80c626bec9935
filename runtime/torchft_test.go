package runtime_test

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// TestRolesOfTorchFT: a job of torchft has a lighthouse, which is small and serves; each
// replica group comes and goes alone.
func TestRolesOfTorchFT(t *testing.T) {
	job := spec("torchft", "tensorboard", 1, "replica", 4)
	job.Command = []string{"env/bin/python3", "train.py"}
	job.Roles[1].MemoryMb, job.Roles[1].Vcores, job.Roles[1].Gpus, job.Roles[1].Min = 64<<10, 8, 4, 2
	for range 2 {
		if err := runtime.Complete(job); err != nil {
			t.Fatal(err)
		}
	}
	lighthouse := job.Roles[0]
	if len(job.Roles) != 3 || lighthouse.Name != "lighthouse" || lighthouse.Count != 1 || lighthouse.Min != 0 || lighthouse.MemoryMb != 1024 || lighthouse.Vcores != 1 || lighthouse.Gpus != 0 || !lighthouse.Coordinates {
		t.Errorf("the lighthouse that was added is %v", lighthouse)
	}
	for i, want := range []proto.CompletionRule{service, optional, required} {
		if r := job.Roles[i]; r.Loss != alone || r.Completion != want {
			t.Errorf("%s: %v and %v", r.Name, r.Loss, r.Completion)
		}
	}
	argv, _, err := runtime.Command(job, framework.Attempt{Task: runtime.Tasks(job)[0], Ports: fixedPorts(job)})
	if got := strings.Join(argv, " "); err != nil || got != "env/bin/python3 -m _holdfast.lighthouse --min_replicas 2 --bind [::]:20000" {
		t.Errorf("the lighthouse is started as %q, %v", got, err)
	}

	own := spec("torchft", "worker", 1, "lighthouse", 1)
	own.Roles[1].Command = []string{"torchft_lighthouse", "--min_replicas", "1"}
	if err := runtime.Complete(own); err != nil || len(own.Roles) != 2 || len(own.Roles[1].Command) != 3 {
		t.Errorf("with a lighthouse of its own: %v, %v", own.Roles, err)
	}
	two := spec("torchft", "replica", 1, "lighthouse", 2)
	if err := runtime.Complete(two); err == nil || !strings.Contains(err.Error(), "--lighthouse 1") {
		t.Errorf("with two lighthouses: %v", err)
	}
	for command, want := range map[string]string{
		"bin/torchrun": "bin/python3", "torchrun": "python3", "/opt/python": "/opt/python", "venv/bin/my-train": "venv/bin/python3",
		"job/train.sh": "python3", "job/train.py": "python3", "/bin/bash": "python3", "/usr/bin/env": "python3",
	} {
		job := spec("torchft", "replica", 1)
		job.Command = []string{command, "train.py"}
		if err := runtime.Complete(job); err != nil || job.Roles[0].Command[0] != want {
			t.Errorf("beside %s, the lighthouse is run by %q, %v", command, job.Roles[0].Command, err)
		}
	}
}

// fixedPorts gives each task of a job a port.
func fixedPorts(job *proto.JobSpec) map[string]int {
	all := map[string]int{}
	for i, t := range runtime.Tasks(job) {
		all[t.Name] = 20000 + i
	}
	return all
}

// TestEnvironmentOfTorchFT: a replica group is a world of its own, at an address that leads
// its peers to it wherever it runs, and knows its number among the groups.
func TestEnvironmentOfTorchFT(t *testing.T) {
	job := spec("torchft", "replica", 3)
	job.Roles[0].Processes = 2
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		forwarded bool
		host      string
	}{"steered": {false, "127.77.0.3"}, "forwarded": {true, "node7"}} {
		_, env, err := runtime.Command(job, framework.Attempt{
			Task: framework.Task{Name: "replica-1", Role: "replica", Index: 1}, Local: 1, Ports: fixedPorts(job), Host: "node7", Forwarded: c.forwarded, Interface: "eth1",
		})
		if err != nil {
			t.Fatal(err)
		}
		for variable, want := range map[string]string{
			"TORCHFT_LIGHTHOUSE": "http://lighthouse-0:20000", "REPLICA_GROUP_ID": "1", "NUM_REPLICA_GROUPS": "3",
			"MASTER_ADDR": c.host, "MASTER_PORT": "20002", "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
			"PET_NNODES": "1", "PET_NODE_RANK": "0", "PET_MASTER_ADDR": c.host, "PET_MASTER_PORT": "20002", "HOLDFAST_TORCHFT_HOST": c.host,
			"GLOO_SOCKET_IFNAME": "eth1",
		} {
			if env[variable] != want {
				t.Errorf("%s: %s is %q, want %q", name, variable, env[variable], want)
			}
		}
	}
}

// TestLostLighthouse: a replica group that ends because it finds no quorum has lost a peer.
func TestLostLighthouse(t *testing.T) {
	for _, text := range []string{
		"RuntimeError: status: Internal, message: \"lighthouse quorum failed after 30 retries.\"",
		"AttributeError: 'Future' object has no attribute '_fut'",
		"RuntimeError: status: Internal, message: \"Failed to connect to lighthouse. error: transport error\"",
	} {
		if v := runtime.Explain([]string{text}); !v.PeerLost {
			t.Errorf("%s: %+v", text, v)
		}
	}
}
