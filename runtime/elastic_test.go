package runtime_test

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// TestRanksAreDense: in a generation without some tasks, the others are ranks without a gap,
// by the names that each framework has for that.
func TestRanksAreDense(t *testing.T) {
	for name, want := range map[string]map[string]string{
		"pytorch":    {"RANK": "1", "WORLD_SIZE": "2", "NODE_RANK": "1", "MASTER_ADDR": "worker-1", "PET_NNODES": "2"},
		"jax":        {"JAX_PROCESS_ID": "1", "JAX_NUM_PROCESSES": "2", "JAX_COORDINATOR_ADDRESS": "worker-1:1"},
		"horovod":    {"HOROVOD_RANK": "1", "HOROVOD_SIZE": "2", "HOROVOD_CROSS_RANK": "1", "HOROVOD_CROSS_SIZE": "2", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "worker-1", "HOROVOD_GLOO_RENDEZVOUS_PORT": "1"},
		"tensorflow": {"TF_CONFIG": `{"cluster":{"worker":["worker-1:1","worker-3:3"]},"task":{"type":"worker","index":1}}`, "TASK_INDEX": "1"},
	} {
		spec := &proto.JobSpec{Name: "j", Framework: name, Roles: []*proto.RoleSpec{{Name: "worker", Count: 4, Min: 2}}, Command: []string{"python", "{worker_hosts}", "{rank}/{world_size}"}}
		if err := runtime.Complete(spec); err != nil {
			t.Fatal(err)
		}
		argv, env, err := runtime.Command(spec, framework.Attempt{
			Task: framework.Task{Name: "worker-3", Role: "worker", Index: 3}, Absent: []int32{0, 2}, WorldChanged: true,
			Ports: map[string]int{"worker-1": 1, "worker-3": 3},
		})
		if err != nil {
			t.Fatal(err)
		}
		for variable, value := range want {
			if env[variable] != value {
				t.Errorf("%s: %s is %q, want %q", name, variable, env[variable], value)
			}
		}
		if got := strings.Join(argv[1:], " "); got != "worker-1:1,worker-3:3 1/2" || env["HOLDFAST_WORLD_CHANGED"] != "1" || env["HOLDFAST_WORLD_MAX"] != "4" {
			t.Errorf("%s: the command has %q, HOLDFAST_WORLD_CHANGED is %q, and HOLDFAST_WORLD_MAX %q", name, got, env["HOLDFAST_WORLD_CHANGED"], env["HOLDFAST_WORLD_MAX"])
		}
	}
}
