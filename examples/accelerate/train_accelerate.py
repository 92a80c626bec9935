"""A loop of one's own, made fit for many processes by Hugging Face's Accelerate.

Rank 0 saves ./train_logs/step-N.pt now and then. When a rank is lost all start again,
and go on from the newest: so every rank must see the same ./train_logs.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/accelerate \
        --files train_accelerate.py -- accelerate launch train_accelerate.py --steps 200
"""
import argparse
import glob
import itertools
import os
import re
import time

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the newest checkpoint's step and path."""
    found = [(int(re.search(r"step-(\d+)\.pt$", p).group(1)), p) for p in glob.glob(LOGS + "/step-*.pt")]
    return max(found, default=(0, None))


def main():
    torch.set_num_threads(1)
    accelerator = Accelerator()
    torch.manual_seed(0)
    x = torch.rand(3200, 10)
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32, shuffle=True)

    step, path = broadcast_object_list(list(newest()))  # all go on from the same one
    if path:
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    print("rank %d of %d begins at step %d" % (accelerator.process_index, accelerator.num_processes, step), flush=True)

    batches = itertools.chain.from_iterable(itertools.repeat(data))
    while step < FLAGS.steps:
        x, y = next(batches)
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        step += 1
        if step % 5 == 0:
            accelerator.print("step %d loss %.6f" % (step, loss.item()), flush=True)
        if step % FLAGS.save_steps == 0 or step == FLAGS.steps:
            os.makedirs(LOGS, exist_ok=True)
            state = {"model": accelerator.unwrap_model(model).state_dict(), "optimizer": optimizer.state_dict()}
            accelerator.save(state, "%s/step-%d.pt" % (LOGS, step))  # by rank 0
        time.sleep(FLAGS.step_secs)
    accelerator.end_training()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
