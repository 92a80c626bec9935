package runtime_test

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/test/bound"
)

func TestFrameworksOfCommands(t *testing.T) {
	for command, want := range map[string]string{
		"torchrun train.py":                                               "pytorch",
		"venv/bin/torchrun --nnodes=2 train.py":                           "pytorch",
		"accelerate launch train.py":                                      "pytorch",
		"deepspeed train.py":                                              "pytorch",
		"python3.11 -u -m torch.distributed.run x.py":                     "pytorch",
		"python -m torch.distributed.launch x.py":                         "pytorch",
		"python -W ignore -m torch.distributed.run x":                     "pytorch",
		"python -s -X dev -um torch.distributed.run x":                    "pytorch",
		"python -Wignore -mtorch.distributed.run x":                       "pytorch",
		"python --check-hash-based-pycs never -m torch.distributed.run x": "pytorch",
		"python -c -m torch.distributed.run":                              "none",
		"python -uc x -m torch.distributed.run":                           "none",
		"python -- x.py -m torch.distributed.run":                         "none",
		"python - -m torch.distributed.run":                               "none",
		"python -W -m torch.distributed.run":                              "none",
		"python train.py -m torch.distributed.run":                        "none",
		"python -c torchrun":                                              "none",
		"python -m train":                                                 "none",
		"python train.py":                                                 "none",
		"horovodrun -np 2 python train.py":                                "horovod",
		"sh -c cd|x|&&|exec|torchrun|train.py":                            "pytorch",
		"bash -ec torchrun|train.py":                                      "pytorch",
		"bash -euo pipefail -c torchrun|train.py":                         "pytorch",
		"bash --norc -x -c torchrun|train.py":                             "pytorch",
		"bash -c -e torchrun|train.py":                                    "pytorch",
		"bash -c exec|\"$@\" bash torchrun":                               "none",
		"bash -e torchrun.sh -c torchrun":                                 "none",
		"sh torchrun.sh":                                                  "none",
		"echo torchrun":                                                   "none",
	} {
		words := strings.Fields(command)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "|", " ")
		}
		name, why := runtime.ImpliedFramework(&proto.JobSpec{Roles: []*proto.RoleSpec{{Name: "worker", Count: 1, Command: words}}})
		if name != want || (why != "") != (want != "none") {
			t.Errorf("%s: %s, because %q; want %s", command, name, why, want)
		}
	}
	job := spec("", "ps", 1, "worker", 1)
	if name, why := runtime.ImpliedFramework(job); name != "tensorflow" || why != "" {
		t.Errorf("parameter servers imply %s, because %q", name, why)
	}
}

func TestFrameworksOfScripts(t *testing.T) {
	for script, want := range map[string]string{
		"import torch\n":                                          "pytorch",
		"import os, torch.nn as nn\n":                             "pytorch",
		"from torch.utils import data\nimport accelerate\n":       "pytorch",
		"import pytorch_lightning as pl\r\n":                      "pytorch",
		"import jax.numpy as jnp\n":                               "jax",
		"\ufeffimport torch\n":                                    "pytorch",
		"lazy import torch\n":                                     "pytorch", // since Python 3.15
		"lazy from jax import numpy\n":                            "jax",
		"lazyimport torch\n":                                      "",
		"import tensorflow.compat.v1 as tf\n":                     "tensorflow",
		"import torch\nimport tensorflow\n":                       "",
		"import xgboost as xgb\n":                                 "xgboost",
		"from lightgbm import LGBMClassifier\n":                   "lightgbm",
		"import xgboost\nimport torch\n":                          "pytorch",
		"import torch\nimport lightgbm, xgboost\n":                "pytorch",
		"import lightgbm, xgboost\nimport jax\n":                  "jax",
		"import lightgbm\nimport xgboost\n":                       "",
		"import torch\nimport xgboost\nimport tensorflow\n":       "",
		"import torch\nimport ray\nimport tensorflow\n":           "ray",
		"import ray.train\nimport xgboost\n":                      "ray",
		"import torch\nimport horovod.torch as hvd\n":             "horovod",
		"import ray\nimport horovod.torch as hvd\n":               "",
		"try:\n    import torch\nexcept ImportError:\n    pass\n": "",
		"# import torch\n":                                        "",
		"import torchdata\nfrom . import torch\n":                 "",
		"importtorch = 1\n":                                       "",
		"":                                                        "",
	} {
		if name, why := runtime.ImportedFramework([]byte(script)); name != want || (why != "") != (want != "") {
			t.Errorf("%q: %q, because it %q; want %q", script, name, why, want)
		}
	}
}

func FuzzImports(f *testing.F) {
	f.Add([]byte("import torch, jax\nfrom tensorflow import x"))
	f.Fuzz(func(t *testing.T, script []byte) {
		defer bound.Memory(t, len(script), 64)()
		if name, why := runtime.ImportedFramework(script); (name == "") != (why == "") {
			t.Errorf("%q, because it %q", name, why)
		}
	})
}
