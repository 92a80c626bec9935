# Writes the directories trainer (of transformers' Trainer, its model in one file in checkpoint-1
# and cut in checkpoint-2) and deepspeed (of one rank with ZeRO) beside it; recorded with
# transformers 5.24.0, torch 2.15.0 and deepspeed 0.19.8.
import os
import shutil
import sys

import deepspeed
import torch
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments


class Config(PretrainedConfig):
    model_type = "tiny"


class Tiny(PreTrainedModel):
    config_class = Config
    shard = 10**9

    def __init__(self, config):
        super().__init__(config)
        self.first = torch.nn.Linear(4, 8)
        self.second = torch.nn.Linear(8, 2, dtype=torch.float32)
        self.post_init()

    def forward(self, x, y):
        out = self.second(torch.relu(self.first(x)))
        return {"loss": ((out - y) ** 2).mean(), "logits": out}

    def save_pretrained(self, *args, **kwargs):
        super().save_pretrained(*args, **{**kwargs, "max_shard_size": self.shard})


torch.manual_seed(1)
data = [{"x": torch.ones(4) * i, "y": torch.zeros(2)} for i in range(8)]
shutil.rmtree("trainer", ignore_errors=True)
for steps, shard in (1, 10**9), (2, 100):
    model = Tiny(Config())
    model.shard = shard
    args = TrainingArguments("trainer", max_steps=steps, save_steps=steps, use_cpu=True, report_to=[], disable_tqdm=True)
    Trainer(model=model, args=args, train_dataset=data).train()
    for name in "training_args.bin", "rng_state.pth", "scheduler.pt":  # they say nothing more
        os.remove(f"trainer/checkpoint-{steps}/{name}")

shutil.rmtree("deepspeed", ignore_errors=True)
os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1], DS_ACCELERATOR="cpu")
deepspeed.init_distributed(dist_backend="gloo")
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 1))
engine, *_ = deepspeed.initialize(model=net, model_parameters=net.parameters(), config={
    "train_batch_size": 2, "optimizer": {"type": "Adam", "params": {"torch_adam": True}}, "zero_optimization": {"stage": 1}, "bf16": {"enabled": True}})
loss = engine(torch.ones(2, 4, dtype=torch.bfloat16)).float().mean()
engine.backward(loss)
engine.step()
engine.save_checkpoint("deepspeed", tag="global_step1")
os.remove("deepspeed/zero_to_torch.py")
