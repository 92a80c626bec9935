"""A model whose parameters are spread over all ranks (FSDP), with distributed checkpoints.

Every rank holds a part of each parameter and of the optimizer's state, and writes it
into ./train_logs/step-N with torch.distributed.checkpoint. When a rank is lost all
start again, and each reads its part from the newest checkpoint: so every rank must see
the same ./train_logs. The number of ranks may be another one then.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/fsdp \
        --files train_fsdp.py -- torchrun train_fsdp.py --steps 200
"""
import argparse
import glob
import re
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the step of the newest checkpoint. Its .metadata is written last."""
    found = [re.search(r"step-(\d+)/", p) for p in glob.glob(LOGS + "/step-*/.metadata")]
    return max([int(m.group(1)) for m in found], default=0)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    mesh = init_device_mesh("cpu", (world,))
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    choice = torch.tensor([newest()])  # all go on from the same one
    dist.broadcast(choice, src=0)
    step = int(choice.item())
    if step:
        weights, moments = get_state_dict(model, optimizer)
        dcp.load({"model": weights, "optimizer": moments}, checkpoint_id="%s/step-%d" % (LOGS, step))
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    print("rank %d of %d begins at step %d" % (rank, world, step), flush=True)

    data = torch.Generator().manual_seed(rank)
    while step < FLAGS.steps:
        x = torch.rand(32, 10, generator=data)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss.item()), flush=True)
        if step % FLAGS.save_steps == 0 or step == FLAGS.steps:
            weights, moments = get_state_dict(model, optimizer)
            dcp.save({"model": weights, "optimizer": moments}, checkpoint_id="%s/step-%d" % (LOGS, step))
        time.sleep(FLAGS.step_secs)
    dist.barrier()
    dist.destroy_process_group()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
