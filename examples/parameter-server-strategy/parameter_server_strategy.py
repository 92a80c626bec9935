"""TensorFlow 2's ParameterServerStrategy, to be relaunched after a failure.

Learns a linear model of ten weights. The chief has the workers make the steps,
and saves ./train_logs/ckpt-N, of which each parameter server writes what it
holds: so every task must see the same ./train_logs. Steps of a worker that is
lost are made by the others. When a parameter server is lost, the chief ends with
an error, and restores the newest checkpoint once all of them run again. Workers
and parameter servers serve until they are stopped.

The addresses are in TF_CONFIG.
"""
import argparse
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--steps_per_sec", type=float, default=15, help="of all workers together; 0: as fast as it goes")
parser.add_argument("--save_steps", type=int, default=25, help="steps between checkpoints")
FLAGS = parser.parse_args()


def main():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type != "chief":
        server = tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,
                                      task_index=resolver.task_id, protocol="grpc")
        print("%s %d is ready" % (resolver.task_type, resolver.task_id), flush=True)
        server.join()

    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        w = tf.Variable(tf.random.normal([10, 1], stddev=0.1), name="weights")
        b = tf.Variable(tf.zeros([1]), name="bias")
    truth = tf.constant(np.arange(1, 11, dtype=np.float32).reshape(10, 1))

    @tf.function
    def train():
        x = tf.random.uniform([32, 10])
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - tf.matmul(x, truth)))
        for v, g in zip((w, b), tape.gradient(loss, (w, b))):
            v.assign_sub(0.05 * g)
        return loss

    made = tf.Variable(0, dtype=tf.int64)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(w=w, b=b, step=made), "./train_logs", max_to_keep=3)
    manager.checkpoint.restore(manager.latest_checkpoint)
    step = int(made.numpy())
    print("begins at step %d" % step, flush=True)
    while step < FLAGS.steps:
        count = min(FLAGS.save_steps, FLAGS.steps - step)
        began = time.time()
        losses = [coordinator.schedule(train) for _ in range(count)]
        coordinator.join()
        step += count
        made.assign(step)
        manager.save(checkpoint_number=step)
        print("step %d loss %.4f" % (step, losses[-1].fetch()), flush=True)
        if FLAGS.steps_per_sec:
            time.sleep(max(0, count / FLAGS.steps_per_sec - (time.time() - began)))
    print("final step %d" % step, flush=True)


main()
