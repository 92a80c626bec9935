"""Ray Train: a data-parallel loop on all nodes of a Ray cluster.

The workers average their gradients through an actor. Ray Train copies what they report into
/tmp/train_logs/linear, and begins again from the newest checkpoint there when a worker or the
head was lost. The workers' paths must be the head's, so the directory is an absolute one.
ray.init needs no arguments.

    yarn-submit run --framework ray --worker 2 \
        --checkpoint /tmp/train_logs=hdfs:///user/alice/ray \
        --files train_ray.py -- python train_ray.py --workers 2
"""
import argparse
import os
import tempfile
import time

import numpy as np
import ray
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=2)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "/tmp/train_logs"
TRUTH = np.arange(10.0)


@ray.remote(num_cpus=0)
class Average:
    """Averages what all workers have for a step."""

    def __init__(self, workers):
        self.workers, self.step, self.sum, self.parts, self.result = workers, None, 0, 0, None

    def add(self, step, part):
        if step != self.step:
            self.step, self.sum, self.parts = step, 0, 0
        self.sum, self.parts = self.sum + part, self.parts + 1
        if self.parts == self.workers:
            self.result = (step, self.sum / self.parts)

    def get(self, step):
        return self.result[1] if self.result and self.result[0] == step else None


def average(actor, step, part):
    ray.get(actor.add.remote(step, part))
    while True:
        found = ray.get(actor.get.remote(step))
        if found is not None:
            return found
        time.sleep(0.01)


def train(flags):
    rank, world = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    step, weights = 0, np.zeros(10)
    checkpoint = ray.train.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as directory, np.load(os.path.join(directory, "state.npz")) as state:
            step, weights = int(state["step"]), state["weights"]
    # Each beginning has an actor of its own: a worker that was lost may have left a part in the last.
    actor = Average.options(name="average-%d" % step, get_if_exists=True).remote(world)
    print("rank %d of %d begins at step %d" % (rank, world, step), flush=True)
    random = np.random.default_rng(rank)
    while step < flags["steps"]:
        step += 1
        x = random.normal(size=(100, 10))
        error = x @ weights - x @ TRUTH
        weights = weights - 0.02 * average(actor, step, x.T @ error / len(x))
        if rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, np.mean(error**2)), flush=True)
        if step % flags["save_steps"] == 0 or step == flags["steps"]:
            with tempfile.TemporaryDirectory() as directory:
                if rank == 0:
                    np.savez(os.path.join(directory, "state.npz"), step=step, weights=weights)
                saved = ray.train.Checkpoint.from_directory(directory) if rank == 0 else None
                ray.train.report({"step": step}, checkpoint=saved)
        time.sleep(flags["step_secs"])


def main():
    ray.init()
    result = DataParallelTrainer(
        train,
        train_loop_config=vars(FLAGS),
        scaling_config=ray.train.ScalingConfig(num_workers=FLAGS.workers, placement_strategy="SPREAD"),
        run_config=ray.train.RunConfig(
            name="linear", storage_path=LOGS, failure_config=ray.train.FailureConfig(max_failures=-1)
        ),
    ).fit()
    print("final step %d" % result.metrics["step"], flush=True)


if __name__ == "__main__":
    main()
