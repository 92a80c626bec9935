"""Keras' fit() on several machines, with MultiWorkerMirroredStrategy and BackupAndRestore.

The chief saves what it needs to go on into ./train_logs/chief. When a worker is lost all
start again, and BackupAndRestore goes on from there: so every worker must see the same
./train_logs. The strategy is for Keras 2, which tf-keras is.

    yarn-submit run --framework tensorflow --worker 2 --env TF_USE_LEGACY_KERAS=1 \
        --checkpoint ./train_logs=hdfs:///user/alice/keras \
        --files train_keras.py -- python train_keras.py --steps 200
"""
import argparse
import os
import time

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()

STEPS_PER_EPOCH = 100


class Report(tf.keras.callbacks.Callback):
    """Prints a line now and then: a bar is not for a log."""

    def on_epoch_begin(self, epoch, logs=None):
        self.before = epoch * STEPS_PER_EPOCH

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(FLAGS.step_secs)
        step = self.before + batch + 1
        if step % 5 == 0:
            print("step %d loss %.6f" % (step, logs["loss"]), flush=True)


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    tf.keras.utils.set_random_seed(1)
    x = tf.random.uniform((3200, 10))
    data = tf.data.Dataset.from_tensor_slices((x, tf.reduce_sum(x, 1, keepdims=True))).repeat().batch(64)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu", input_shape=(10,)), tf.keras.layers.Dense(1)])
        model.compile("adam", "mse")
    model.fit(
        data.with_options(options), epochs=FLAGS.steps // STEPS_PER_EPOCH, steps_per_epoch=STEPS_PER_EPOCH, verbose=0,
        callbacks=[tf.keras.callbacks.BackupAndRestore("./train_logs", save_freq=FLAGS.save_steps, delete_checkpoint=False), Report()])
    print("final step %d" % FLAGS.steps, flush=True)


if __name__ == "__main__":
    main()
