"""Gradient boosting with LightGBM, each process with its own part of the data.

With tree_learner=data, LightGBM adds the histograms of all processes up, so that each
grows the same trees. Rank 0 saves ./train_logs/model-N.txt after N rounds. When a process
is lost all start again, and go on from the newest: so every process must see the same
./train_logs. Where the others are, no parameter has to say.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/lightgbm \
        --files train_lightgbm.py -- python train_lightgbm.py --rank {rank} --steps 200
"""
import argparse
import glob
import os
import re
import time

import lightgbm as lgb
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--rank", type=int, default=0)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the newest checkpoint's step and path."""
    found = [(int(re.search(r"model-(\d+)\.txt$", p).group(1)), p) for p in glob.glob(LOGS + "/model-*.txt")]
    return max(found, default=(0, None))


def main():
    x = np.random.default_rng(FLAGS.rank).random((2000, 10))
    y = x.sum(1)
    first, path = newest()
    print("rank %d begins at step %d" % (FLAGS.rank, first), flush=True)

    def after_step(env):
        step = env.iteration + 1  # counts those of the model that it goes on from
        if FLAGS.rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, env.evaluation_result_list[0][2]), flush=True)
        if FLAGS.rank == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            os.makedirs(LOGS, exist_ok=True)
            env.model.save_model("%s/model-%d.txt" % (LOGS, step))
        time.sleep(FLAGS.step_secs)

    params = {"tree_learner": "data", "pre_partition": True, "num_leaves": 8, "learning_rate": 0.05, "metric": "rmse", "verbose": -1}
    data = lgb.Dataset(x, label=y, params=params, free_raw_data=False)
    lgb.train(params, data, FLAGS.steps - first, valid_sets=[data], init_model=path, callbacks=[after_step])
    print("final step %d" % FLAGS.steps, flush=True)


if __name__ == "__main__":
    main()
