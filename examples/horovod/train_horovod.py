"""All-reduce training of a PyTorch model with Horovod.

Rank 0 saves ./train_logs/step-N.pt now and then. When a rank is lost all start again,
and go on from the newest: so every rank must see the same ./train_logs. Horovod's own
launcher is left out.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/horovod \
        --files train_horovod.py -- python train_horovod.py --steps 200
"""
import argparse
import glob
import os
import re
import time

import horovod.torch as hvd
import torch

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
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".tmp")
    os.rename(path + ".tmp", path)  # a checkpoint appears whole


def main():
    torch.set_num_threads(1)
    hvd.init()
    torch.manual_seed(hvd.rank())
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    step, path = newest() if hvd.rank() == 0 else (0, None)
    if path:  # the others get it from rank 0
        state = torch.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    step = hvd.broadcast_object(step, root_rank=0)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    print("rank %d of %d begins at step %d" % (hvd.rank(), hvd.size(), step), flush=True)

    while step < FLAGS.steps:
        x = torch.rand(32, 10)
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if hvd.rank() == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss.item()), flush=True)
        if hvd.rank() == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            save(step, model, optimizer)
        time.sleep(FLAGS.step_secs)
    hvd.shutdown()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
