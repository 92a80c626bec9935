"""Data-parallel training with MXNet's parameter servers.

Workers push their gradients to the servers, which sum those of a step up; all workers
then pull the same. Worker 0 saves ./train_logs/step-N.params now and then. When a task is
lost all start again, and go on from the newest: so every task must see the same
./train_logs. Servers, and the scheduler, which is added, end in the import of MXNet.

    yarn-submit run --framework mxnet --role server=1 --worker 2 \
        --checkpoint ./train_logs=hdfs:///user/alice/mxnet \
        --files train_mxnet.py -- python train_mxnet.py --steps 200
"""
import argparse
import glob
import os
import re
import time

import mxnet as mx
from mxnet import autograd, gluon, nd

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the newest checkpoint's step and path."""
    found = [(int(re.search(r"step-(\d+)\.params$", p).group(1)), p) for p in glob.glob(LOGS + "/step-*.params")]
    return max(found, default=(0, None))


def save(step, net):
    os.makedirs(LOGS, exist_ok=True)
    path = "%s/step-%d.params" % (LOGS, step)
    net.save_parameters(path + ".tmp")
    os.rename(path + ".tmp", path)  # a checkpoint appears whole


def main():
    store = mx.kv.create("dist_sync")
    mx.random.seed(0)
    net = gluon.nn.Sequential()
    net.add(gluon.nn.Dense(32, in_units=10, activation="relu"), gluon.nn.Dense(1, in_units=32))
    net.initialize(mx.init.Xavier())
    step, path = newest()
    if path:
        net.load_parameters(path)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.02}, kvstore=store, update_on_kvstore=False)
    loss_of = gluon.loss.L2Loss()
    print("worker %d of %d begins at step %d" % (store.rank, store.num_workers, step), flush=True)

    mx.random.seed(store.rank + 1)
    while step < FLAGS.steps:
        x = nd.random.uniform(shape=(32, 10))
        with autograd.record():
            loss = loss_of(net(x), x.sum(axis=1, keepdims=True)).mean()
        loss.backward()
        trainer.step(store.num_workers)
        step += 1
        if store.rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss.asscalar()), flush=True)
        if store.rank == 0 and (step % FLAGS.save_steps == 0 or step == FLAGS.steps):
            save(step, net)
        time.sleep(FLAGS.step_secs)
    store._barrier()  # the servers end with the first worker that does
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
