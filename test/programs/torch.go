package programs

import (
	"context"
	"regexp"

	"holdfast/test/pyenv"
)

// twoRanks are the roles of a program whose two tasks are on nodes of their own.
var twoRanks = []string{"--worker", "2", "--worker-memory", "1800m"}

// inSteps are the arguments of the examples: enough steps for three losses.
var inSteps = []string{"--steps", "300", "--save_steps", "20", "--step_secs", "0.1"}

// bar is what Hugging Face's Trainer shows, but for its beginning at 0.
var bar = regexp.MustCompile(`\b([1-9]\d*)/300 \[`)

// ranks is a program of two ranks that saves to ./train_logs and says "step 12".
func ranks(name, script, format, victim string, packages []string, command ...string) Program {
	return Program{
		Name: name, Packages: packages, Python: pyenv.NewestTorch, Files: []string{script}, Flags: twoRanks,
		Command: command, Path: "./train_logs", Format: format, Step: step, Victim: victim,
	}
}

var torchPrograms = []Program{
	ddp("pytorch-ddp", pyenv.NewestTorch, "bin/torchrun"),
	ranks("accelerate", "accelerate/train_accelerate.py", "torch", "worker-1", []string{"accelerate", "torch"},
		append([]string{"bin/accelerate", "launch", "--cpu", "train_accelerate.py"}, inSteps...)...),
	ranks("deepspeed", "deepspeed/train_deepspeed.py", "deepspeed", "worker-1", []string{"deepspeed", "torch"},
		append([]string{"python", "train_deepspeed.py"}, inSteps...)...),
	ddp("pytorch-ddp-2.2", pyenv.Torch22.Make, "bin/torchrun"),
	ddp("pytorch-ddp-1.13", pyenv.Torch, "python", "-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"),
	trainer(ranks("huggingface-trainer", "huggingface-trainer/train_trainer.py", "huggingface", "worker-1", []string{"transformers", "torch"},
		append([]string{"bin/torchrun", "train_trainer.py"}, inSteps...)...)),
	ranks("lightning", "lightning/train_lightning.py", "torch", "worker-0", []string{"lightning", "torch"},
		append([]string{"python", "train_lightning.py", "--nodes", "{world_size}"}, inSteps...)...),
	ranks("pytorch-fsdp", "pytorch-fsdp/train_fsdp.py", "dcp", "worker-1", []string{"torch"},
		append([]string{"bin/torchrun", "train_fsdp.py"}, inSteps...)...),
}

// trainer has a program's steps read from the bar of Hugging Face's Trainer.
func trainer(p Program) Program {
	p.Step = bar
	return p
}

// ddp is all-reduce under torchrun, with some PyTorch.
func ddp(name string, python func(context.Context) (string, error), torchrun ...string) Program {
	p := ranks(name, "pytorch-ddp/train.py", "torch", "worker-0", []string{"torch"}, append(append(torchrun, "train.py"), inSteps...)...)
	p.Python = python
	return p
}
