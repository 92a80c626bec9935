# Writes trainer_args_2_ranks.bin beside it: the arguments that Trainer saves on two ranks; recorded
# with transformers 4.36.2, accelerate 0.25.0 and torch 1.13.0. Start it once for each rank, with
# RANK, LOCAL_RANK, WORLD_SIZE=2, MASTER_ADDR and MASTER_PORT.
import os
import shutil

import torch
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments


class Config(PretrainedConfig):
    model_type = "tiny"


class Tiny(PreTrainedModel):
    config_class = Config

    def __init__(self, config):
        super().__init__(config)
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x, y):
        out = self.layer(x)
        return {"loss": ((out - y) ** 2).mean(), "logits": out}


data = [{"x": torch.ones(2), "y": torch.zeros(1)} for _ in range(8)]
args = TrainingArguments("two", max_steps=1, save_steps=1, use_cpu=True, logging_dir="logs", report_to=[], disable_tqdm=True, ddp_backend="gloo")
Trainer(model=Tiny(Config()), args=args, train_dataset=data).train()
if os.environ["RANK"] == "0":
    shutil.copy("two/checkpoint-1/training_args.bin", "trainer_args_2_ranks.bin")
