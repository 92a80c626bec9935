"""A model trained with DeepSpeed, whose optimizer's state is spread over all ranks (ZeRO 1).

All ranks save into ./train_logs/global_stepN, and rank 0 then writes its name to
./train_logs/latest. When a rank is lost all start again, and go on from what latest
names: so every rank must see the same ./train_logs.

    yarn-submit run --worker 2 \
        --checkpoint ./train_logs=hdfs:///user/alice/deepspeed \
        --files train_deepspeed.py -- deepspeed train_deepspeed.py --steps 200
"""
import argparse
import os
import time

import deepspeed
from deepspeed.accelerator import get_accelerator
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
parser.add_argument("--local_rank", type=int, default=0, help="which DeepSpeed's launcher gives")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def main():
    torch.set_num_threads(1)
    cpu = get_accelerator().device_name() == "cpu"
    deepspeed.init_distributed(dist_backend="gloo" if cpu else None)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    engine, _, _, _ = deepspeed.initialize(
        model=model, optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
        config={"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 1},
                "zero_allow_untested_optimizer": True, "steps_per_print": 1 << 30})
    if os.path.exists(LOGS + "/latest"):
        engine.load_checkpoint(LOGS)
    rank, step = torch.distributed.get_rank(), engine.global_steps
    print("rank %d begins at step %d" % (rank, step), flush=True)

    data = torch.Generator().manual_seed(rank)
    while step < FLAGS.steps:
        x = torch.rand(32, 10, generator=data).to(engine.device)
        loss = torch.nn.functional.mse_loss(engine(x), x.sum(1, keepdim=True))
        engine.backward(loss)
        engine.step()
        step = engine.global_steps
        if rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss.item()), flush=True)
        if step % FLAGS.save_steps == 0 or step == FLAGS.steps:
            engine.save_checkpoint(LOGS)
        time.sleep(FLAGS.step_secs)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
