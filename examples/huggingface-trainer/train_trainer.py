"""A small language model, trained from nothing with Hugging Face's Trainer.

The Trainer saves ./train_logs/checkpoint-N: the model, the optimizer, and where each
rank is. When a rank is lost all start again, and train(resume_from_checkpoint=True)
goes on from the newest: so every rank must see the same ./train_logs. Neither data nor
model is fetched.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/lm \
        --files train_trainer.py -- torchrun train_trainer.py --steps 200
"""
import argparse
import os
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()


class Counting(torch.utils.data.Dataset):
    """Rows of numbers that count up."""

    def __len__(self):
        return 4096

    def __getitem__(self, i):
        row = (torch.arange(32) + i) % 64
        return {"input_ids": row, "labels": row}


class Pace(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        time.sleep(FLAGS.step_secs)


def main():
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2))
    arguments = TrainingArguments(
        output_dir="./train_logs", max_steps=FLAGS.steps, per_device_train_batch_size=8,
        save_steps=FLAGS.save_steps, save_total_limit=3, logging_steps=10,
        use_cpu=True, report_to="none", seed=1,
    )
    trainer = Trainer(model=model, args=arguments, train_dataset=Counting(), callbacks=[Pace()])
    last = get_last_checkpoint("./train_logs") if os.path.isdir("./train_logs") else None
    print("rank %d goes on from %s" % (arguments.process_index, last), flush=True)
    trainer.train(resume_from_checkpoint=last)
    print("final step %d" % trainer.state.global_step, flush=True)


if __name__ == "__main__":
    main()
