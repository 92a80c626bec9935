"""All-reduce training with torch.distributed on CPUs.

Every rank has a copy of a small linear model, computes a gradient on its own
part of the data and averages it with the others'. Rank 0 saves
./train_logs/step-N.pt now and then. When a rank is lost the others cannot go
on: all ranks start again, and go on from the newest checkpoint, which each of
them reads for itself. So every rank must see the same ./train_logs.

Ranks and addresses come from the environment, as torchrun sets it:

    yarn-submit run --framework pytorch --worker 3 \
        --checkpoint ./train_logs=hdfs:///user/alice/logs --files train.py -- python train.py --steps 200
"""
import argparse
import datetime
import glob
import os
import re
import time

import torch
import torch.distributed as dist

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


def save(step, model, optimizer):
    os.makedirs(LOGS, exist_ok=True)
    path = "%s/step-%d.pt" % (LOGS, step)
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".tmp")
    os.rename(path + ".tmp", path)  # a checkpoint appears whole
    print("saved step %d" % step, flush=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(rank)
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    # All go on from the same checkpoint, whatever appears meanwhile.
    choice = torch.tensor([newest()[0] if rank == 0 else 0])
    dist.broadcast(choice, src=0)
    step = int(choice.item())
    if step:
        state = torch.load("%s/step-%d.pt" % (LOGS, step))
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    else:
        for p in model.parameters():
            dist.broadcast(p.data, src=0)
    print("rank %d of %d begins at step %d" % (rank, world, step), flush=True)

    truth = torch.arange(1.0, 11.0).reshape(10, 1)
    while step < FLAGS.steps:
        x = torch.rand(32, 10)
        loss = torch.nn.functional.mse_loss(model(x), x @ truth)
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world
        optimizer.step()
        step += 1
        if rank == 0 and step % 10 == 0:
            print("step %d loss %.6f" % (step, loss.item()), flush=True)
        if rank == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            save(step, model, optimizer)
        time.sleep(FLAGS.step_secs)
    dist.barrier()  # nobody leaves while others still wait for a gradient
    dist.destroy_process_group()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
