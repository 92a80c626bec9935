package runtime

import (
	"encoding/json"
	"fmt"
	"strconv"

	"holdfast/proto"
)

// frameworkEnv is what a framework wants in a task's environment.
func frameworkEnv(spec *proto.JobSpec, task Task, peers map[string]int) (map[string]string, error) {
	switch spec.Framework {
	case "tensorflow":
		return tensorflowEnv(spec, task, peers)
	case "pytorch", "jax":
		return ranksEnv(spec, task, peers)
	}
	return map[string]string{}, nil
}

// python keeps the output of Python programs from staying in their buffer,
// where the log of a task that dies would lack its last lines.
func python() map[string]string { return map[string]string{"PYTHONUNBUFFERED": "1"} }

// tfConfig is the value of TF_CONFIG, as tf.distribute.cluster_resolver.
// TFConfigClusterResolver reads it.
type tfConfig struct {
	Cluster map[string][]string `json:"cluster"`
	Task    tfTask              `json:"task"`
}

type tfTask struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

func tensorflowEnv(spec *proto.JobSpec, task Task, peers map[string]int) (map[string]string, error) {
	env := python()
	config := tfConfig{Cluster: map[string][]string{}, Task: tfTask{task.Role, task.Index}}
	for _, r := range spec.Roles {
		// An evaluator is told who it is, and is no member of the cluster.
		if beside(spec.Framework, r.Name) {
			continue
		}
		for i := range int(r.Count) {
			name := taskName(r.Name, i)
			port := peers[name]
			if port == 0 {
				return nil, fmt.Errorf("the port of %s is not known yet", name)
			}
			config.Cluster[r.Name] = append(config.Cluster[r.Name], fmt.Sprintf("%s:%d", name, port))
		}
	}
	b, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("making TF_CONFIG: %w", err)
	}
	env["TF_CONFIG"] = string(b)
	return env, nil
}

// ranksEnv numbers the tasks of an all-reduce job. A task is a node of its own
// with one process: whoever wants several ranks in one container starts
// torchrun there.
func ranksEnv(spec *proto.JobSpec, task Task, peers map[string]int) (map[string]string, error) {
	env := python()
	if beside(spec.Framework, task.Role) {
		return env, nil
	}
	rank, world := 0, 0
	var first Task
	for _, t := range Tasks(spec) {
		if beside(spec.Framework, t.Role) {
			continue
		}
		if world == 0 {
			first = t
		}
		if t == task {
			rank = world
		}
		world++
	}
	port := peers[first.Name]
	if port == 0 {
		return nil, fmt.Errorf("the port of %s, which the others meet at, is not known yet", first.Name)
	}
	if spec.Framework == "jax" {
		// jax.distributed.initialize reads the first; a script passes the others.
		env["JAX_COORDINATOR_ADDRESS"] = fmt.Sprintf("%s:%d", first.Name, port)
		env["JAX_NUM_PROCESSES"] = strconv.Itoa(world)
		env["JAX_PROCESS_ID"] = strconv.Itoa(rank)
		return env, nil
	}
	// What torch.distributed's env:// rendezvous reads.
	env["MASTER_ADDR"] = first.Name
	env["MASTER_PORT"] = strconv.Itoa(port)
	env["WORLD_SIZE"] = strconv.Itoa(world)
	env["RANK"] = strconv.Itoa(rank)
	env["LOCAL_WORLD_SIZE"] = "1"
	env["LOCAL_RANK"] = "0"
	return env, nil
}
