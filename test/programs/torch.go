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
	twice(ranks("accelerate", "accelerate/train_accelerate.py", "torch", "worker-1", []string{"accelerate", "torch"},
		append([]string{"bin/accelerate", "launch", "train_accelerate.py"}, inSteps...)...)),
	ranks("accelerate-python", "accelerate/train_accelerate.py", "torch", "worker-0", []string{"accelerate", "torch"},
		append([]string{"python", "train_accelerate.py"}, inSteps...)...),
	twice(ranks("deepspeed", "deepspeed/train_deepspeed.py", "deepspeed", "worker-1", []string{"deepspeed", "torch"},
		append([]string{"bin/deepspeed", "train_deepspeed.py"}, inSteps...)...)),
	ranks("deepspeed-python", "deepspeed/train_deepspeed.py", "deepspeed", "worker-0", []string{"deepspeed", "torch"},
		append([]string{"python", "train_deepspeed.py"}, inSteps...)...),
	ddp("pytorch-ddp-2.2", pyenv.Torch22.Make, "bin/torchrun"),
	ddp("pytorch-ddp-1.13", pyenv.Torch, "python", "-m", "torch.distributed.run", "--tee", "1", "--redirects", "1"),
	fairseq("fairseq", "worker-1"),
	trainer(ranks("huggingface-trainer", "huggingface-trainer/train_trainer.py", "huggingface", "worker-1", []string{"transformers", "torch"},
		append([]string{"bin/torchrun", "train_trainer.py"}, inSteps...)...)),
	ranks("lightning", "lightning/train_lightning.py", "torch", "worker-0", []string{"lightning", "torch"},
		append([]string{"python", "train_lightning.py", "--nodes", "{world_size}"}, inSteps...)...),
	ranks("pytorch-fsdp", "pytorch-fsdp/train_fsdp.py", "dcp", "worker-1", []string{"torch"},
		append([]string{"bin/torchrun", "train_fsdp.py"}, inSteps...)...),
}

// updates is what fairseq prints of its steps.
var updates = regexp.MustCompile(`\bnum_updates=(\d+)`)

// fairseq is the program fairseq-train of its makers, as its wheel installs it: it trains a
// language model on a task that needs no data, and goes on from its checkpoint_last.pt.
func fairseq(name, victim string) Program {
	p := ranks(name, "", "torch", victim, []string{"fairseq", "torch"}, "bin/fairseq-train", "--task", "dummy_lm",
		"--dict-size", "200", "--tokens-per-sample", "64", "--dataset-size", "40000", "--batch-size", "4",
		"--arch", "transformer_lm", "--decoder-layers", "2", "--decoder-embed-dim", "64", "--decoder-ffn-embed-dim", "64", "--decoder-attention-heads", "2",
		"--optimizer", "adam", "--lr", "0.001", "--max-update", "300", "--cpu", "--distributed-backend", "gloo", "--ddp-backend", "legacy_ddp",
		"--save-dir", "./train_logs", "--save-interval-updates", "20", "--keep-interval-updates", "3", "--no-epoch-checkpoints",
		"--disable-validation", "--log-format", "simple", "--log-interval", "5")
	p.Python, p.Files, p.Step = pyenv.Fairseq.Make, nil, updates
	p.Flags = append([]string{"--framework", "pytorch", "--progress", updates.String()}, p.Flags...)
	return p
}

// twice has a program's launcher start two processes in each task. Each of them takes half a
// gigabyte to import what it does, and so does the launcher.
func twice(p Program) Program {
	p.Flags = []string{"--worker", "2", "--worker-processes", "2", "--worker-memory", "2600m"}
	return p
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
