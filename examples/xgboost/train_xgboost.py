"""Gradient boosting with XGBoost, each process with its own part of the data.

XGBoost adds the histograms of all processes up, so that each grows the same trees. Rank 0
saves ./train_logs/model-N.ubj after N rounds. When a process is lost all start again, and
go on from the newest: so every process must see the same ./train_logs. CommunicatorContext
needs no arguments.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/xgboost \
        --files train_xgboost.py -- python train_xgboost.py --steps 200
"""
import argparse
import glob
import os
import re
import time

import numpy as np
import xgboost as xgb
from xgboost import collective

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the newest checkpoint's step and path."""
    found = [(int(re.search(r"model-(\d+)\.ubj$", p).group(1)), p) for p in glob.glob(LOGS + "/model-*.ubj")]
    return max(found, default=(0, None))


class Step(xgb.callback.TrainingCallback):
    def __init__(self, rank):
        super().__init__()
        self.rank = rank

    def after_iteration(self, model, epoch, evals_log):
        step = model.num_boosted_rounds()
        loss = evals_log["train"]["rmse"][-1]
        if self.rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss), flush=True)
        if self.rank == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            os.makedirs(LOGS, exist_ok=True)
            model.save_model("%s/model-%d.ubj" % (LOGS, step))
        time.sleep(FLAGS.step_secs)
        return False


def main():
    with collective.CommunicatorContext():
        rank, world = collective.get_rank(), collective.get_world_size()
        x = np.random.default_rng(rank).random((2000, 10), np.float32)
        data = xgb.DMatrix(x, label=x.sum(1))
        step, path = collective.broadcast(newest() if rank == 0 else None, 0)  # all go on from the same one
        print("rank %d of %d begins at step %d" % (rank, world, step), flush=True)
        xgb.train(
            {"max_depth": 3, "eta": 0.05, "tree_method": "hist"}, data, FLAGS.steps - step,
            evals=[(data, "train")], verbose_eval=False, xgb_model=path, callbacks=[Step(rank)],
        )
    print("final step %d" % FLAGS.steps, flush=True)


if __name__ == "__main__":
    main()
