"""Saves into its working directory, as PyTorch's imagenet example does, and goes on from there."""

import os
import shutil
import time

import torch
import torch.distributed as dist

import model

dist.init_process_group("gloo")
net = torch.nn.parallel.DistributedDataParallel(model.make())
optimizer = torch.optim.SGD(net.parameters(), 0.01)
step = 0
if os.path.isfile("checkpoint.pth.tar"):
    saved = torch.load("checkpoint.pth.tar")
    step = saved["step"]
    net.load_state_dict(saved["state_dict"])
    print(f"resumed from step {step}", flush=True)
while True:
    done = torch.tensor([float(os.path.exists("finished"))])
    dist.broadcast(done, 0)
    if done.item():
        break
    step += 1
    optimizer.zero_grad()
    net(torch.ones(4, 8)).sum().backward()
    optimizer.step()
    if dist.get_rank() == 0:
        torch.save({"step": step, "state_dict": net.state_dict()}, "checkpoint.pth.tar")
        if step % 5 == 0:
            shutil.copyfile("checkpoint.pth.tar", os.path.join(os.getcwd(), "model_best.pth.tar"))
    dist.barrier()
    print(f"step {step}", flush=True)
    time.sleep(0.1)
dist.barrier()
dist.destroy_process_group()
print(f"final step {step}", flush=True)
