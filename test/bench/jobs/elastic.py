"""Ranks that make steps together, and tell when.

Rank 0 appends a line to the file MARKS at each step: the time, how many ranks there are,
and when its process began. Checkpoints are in ./logs, one in ten steps.
"""
import time

began = time.time()

import datetime
import glob
import os
import re

import torch
import torch.distributed as dist

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
rank, world = dist.get_rank(), dist.get_world_size()
found = [int(re.search(r"step-(\d+)\.pt$", p).group(1)) for p in glob.glob("logs/step-*.pt")]
step = torch.tensor([max(found, default=0) if rank == 0 else 0])
dist.broadcast(step, src=0)
if step.item():
    torch.load("logs/step-%d.pt" % step.item())
while True:
    step += 1
    gradient = torch.ones(1000)
    dist.all_reduce(gradient)
    time.sleep(0.1)
    if rank > 0:
        continue
    if step.item() % 10 == 0:
        os.makedirs("logs", exist_ok=True)
        torch.save({"step": step, "gradient": gradient}, "logs/temporary")
        os.rename("logs/temporary", "logs/step-%d.pt" % step.item())
    print("step %d" % step.item(), flush=True)
    with open(os.environ["MARKS"], "a") as f:
        f.write("%.3f %d %.3f\n" % (time.time(), world, began))
