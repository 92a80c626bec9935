"""Keras 3's fit() on several machines: with JAX below, each process has its part of a batch.

ModelCheckpoint saves ./train_logs/epoch-N.keras, the optimizer's state included. When a process is lost all start again, and go on from the newest: so every process
must see the same ./train_logs. jax.distributed.initialize() needs no arguments.

    yarn-submit run --framework jax --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/keras \
        --files train_keras_jax.py -- python train_keras_jax.py --steps 200
"""
import argparse
import glob
import os
import re
import tempfile
import time

os.environ["KERAS_BACKEND"] = "jax"

import jax
import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps of an epoch, after which there is a checkpoint")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

LOGS = "./train_logs"


def newest():
    """Gives the newest checkpoint's epoch and path."""
    found = [(int(re.search(r"epoch-(\d+)\.keras$", p).group(1)), p) for p in glob.glob(LOGS + "/epoch-*.keras")]
    return max(found, default=(0, None))


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize()
    rank = jax.process_index()

    import keras  # finds the devices of all processes

    keras.distribution.set_distribution(keras.distribution.DataParallel(auto_shard_dataset=False))
    keras.utils.set_random_seed(1)

    class Report(keras.callbacks.Callback):
        """Prints a line now and then: a bar is not for a log."""

        def on_epoch_begin(self, epoch, logs=None):
            self.before = epoch * FLAGS.save_steps

        def on_train_batch_end(self, batch, logs=None):
            time.sleep(FLAGS.step_secs)
            step = self.before + batch + 1
            if rank == 0 and step % 5 == 0:
                print("step %d loss %.6f" % (step, logs["loss"]), flush=True)

    epoch, path = newest()
    if path:
        model = keras.saving.load_model(path)
    else:
        model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
        model.compile("adam", "mse")
    print("process %d of %d begins at epoch %d" % (rank, jax.process_count(), epoch), flush=True)

    # Each process takes part in a save, and only the first one's is kept.
    directory = LOGS if rank == 0 else tempfile.mkdtemp()
    checkpoint = keras.callbacks.ModelCheckpoint(directory + "/epoch-{epoch:04d}.keras")
    x = np.random.default_rng(rank).random((32 * FLAGS.save_steps, 10), np.float32)
    model.fit(
        x, x.sum(1, keepdims=True), batch_size=32, verbose=0, callbacks=[checkpoint, Report()],
        initial_epoch=epoch, epochs=FLAGS.steps // FLAGS.save_steps)
    jax.distributed.shutdown()
    print("final step %d" % FLAGS.steps, flush=True)


if __name__ == "__main__":
    main()
