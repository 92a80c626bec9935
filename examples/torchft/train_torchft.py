"""Data-parallel training with torchft on CPUs: replica groups come and go, and the others go on.

Each replica group has the whole of a small linear model. At each step the groups that are
there agree on who they are, through the lighthouse, and average their gradients. One that was
lost starts again, has model, optimizer and step from a peer, and joins. The first of those
present saves ./train_logs/step-N.pt now and then: it is read where all groups were lost.

Addresses come from the environment, as torchft and torchrun have them:

    yarn-submit run --framework torchft --replica 2..3 \
        --checkpoint ./train_logs=hdfs:///user/alice/logs \
        --files train_torchft.py -- python train_torchft.py --steps 200
"""
import argparse
import datetime
import glob
import os
import re
import time

import torch
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

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


def save(step, state):
    os.makedirs(LOGS, exist_ok=True)
    path = "%s/step-%d.pt" % (LOGS, step)
    torch.save(state, path + ".tmp")
    os.rename(path + ".tmp", path)  # a checkpoint appears whole
    print("saved step %d" % step, flush=True)


def main():
    torch.set_num_threads(1)
    group = int(os.environ.get("REPLICA_GROUP_ID", 0))
    torch.manual_seed(group)
    model = torch.nn.Linear(10, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)

    def load_state_dict(state):
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])

    def state_dict():
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    manager = Manager(
        pg=ProcessGroupGloo(timeout=datetime.timedelta(seconds=5)),
        min_replica_size=1,
        load_state_dict=load_state_dict,
        state_dict=state_dict,
        replica_id="group_%d" % group,
        timeout=datetime.timedelta(seconds=30),
    )
    step, path = newest()
    if step:
        state = torch.load(path)
        load_state_dict(state)
        manager.load_state_dict(state["manager"])
    print("group %d begins at step %d" % (group, step), flush=True)

    ddp = DistributedDataParallel(manager, model)
    managed = Optimizer(manager, optimizer)
    truth = torch.arange(1.0, 11.0).reshape(10, 1)
    while manager.current_step() < FLAGS.steps:
        x = torch.rand(32, 10)
        managed.zero_grad()  # here the groups agree on who they are
        loss = torch.nn.functional.mse_loss(ddp(x), x @ truth)
        loss.backward()
        before = manager.current_step()
        managed.step()  # does nothing where a group was lost in the middle of the step
        step = manager.current_step()
        if step == before:
            continue
        if step % 10 == 0:
            print("step %d loss %.6f with %d groups" % (step, loss.item(), manager.num_participants()), flush=True)
        if manager.participating_rank() == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            save(step, {"manager": manager.state_dict(), **state_dict()})
        time.sleep(FLAGS.step_secs)
    manager.shutdown()
    print("final step %d" % manager.current_step(), flush=True)


if __name__ == "__main__":
    main()
