package runtime_test

import (
	"strings"
	"testing"

	"holdfast/runtime"
	"holdfast/test/pyenv"
)

// TestLongMXNetFindsItsServers: a script of MXNet runs unedited as worker, server and scheduler,
// which the job need not name.
func TestLongMXNetFindsItsServers(t *testing.T) {
	out := runTasks(t, pyenv.MXNet, spec("mxnet", "server", 2, "worker", 2), `
import mxnet as mx
kv = mx.kv.create("dist_sync")
kv.init("w", mx.nd.zeros((2,)))
kv.push("w", mx.nd.ones((2,)) * (kv.rank + 1))
got = mx.nd.zeros((2,))
kv.pull("w", out=got)
kv._barrier()
print("worker of", kv.num_workers, "has", got.asnumpy())
`)
	for i, o := range out {
		if worker := i > 2; strings.Contains(o, "worker of 2 has [3. 3.]") != worker {
			t.Errorf("task %d printed\n%s", i, o)
		}
	}
}

func TestRolesOfMXNet(t *testing.T) {
	job := spec("mxnet", "server", 2, "worker", 2)
	if err := runtime.Complete(job); err != nil || job.Roles[0].Name != "scheduler" || job.Roles[0].Completion != either || job.Roles[1].Completion != either || job.Roles[2].Completion != required || job.Roles[2].Loss != together {
		t.Errorf("%v, %v", job.Roles, err)
	}
	alike := spec("mxnet", "worker", 2)
	if err := runtime.Complete(alike); err != nil || len(alike.Roles) != 1 || alike.Roles[0].Loss != alone {
		t.Errorf("without servers: %v, %v", alike.Roles, err)
	}
	for _, wrong := range [][]any{{"server", 1, "chief", 1}, {"server", 1, "worker", 1, "scheduler", 2}} {
		if err := runtime.Complete(spec("mxnet", wrong...)); err == nil || !strings.Contains(err.Error(), "scheduler") {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}
