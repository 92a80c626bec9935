package programs

import "holdfast/test/pyenv"

// twoRanks are the roles of a program whose two tasks are on nodes of their own.
var twoRanks = []string{"--worker", "2", "--worker-memory", "1800m"}

// inSteps are the arguments of the examples: enough steps for three losses.
var inSteps = []string{"--steps", "400", "--save_steps", "20", "--step_secs", "0.1"}

var torchPrograms = []Program{
	{
		Name: "pytorch-ddp-1.13", Packages: []string{"torch"}, Python: pyenv.Torch, Files: []string{"pytorch-ddp/train.py"}, Flags: twoRanks,
		Command: append([]string{"python", "-m", "torch.distributed.run", "--tee", "1", "--redirects", "1", "train.py"}, inSteps...),
		Path:    "./train_logs", Format: "torch", Step: step, Victim: "worker-0",
	},
}
