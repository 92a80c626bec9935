package programs

import "holdfast/test/pyenv"

var rayPrograms = []Program{
	rayTrain("ray-worker", "worker-0"),
	rayTrain("ray-head", "head-0"),
}

// rayTrain is Ray Train with a worker beside the head and one on another node.
func rayTrain(name, victim string) Program {
	return Program{
		Name: name, Packages: []string{"ray"}, Python: pyenv.Ray, Files: []string{"ray/train_ray.py"},
		Flags:   []string{"--framework", "ray", "--head", "1", "--worker", "1", "--head-memory", "2g", "--worker-memory", "1800m"},
		Command: append([]string{"python", "train_ray.py"}, inSteps...),
		Path:    "/tmp/train_logs", Format: "ray", Step: step, Victim: victim,
	}
}
