"""Five workers and several parameter servers with Supervisor and a sharded Saver.

Learns a logistic regression over sparse features with FTRL, the way of
click-rate models: the embedding is split over the parameter servers. Written
for TensorFlow 1; on TensorFlow 2 it runs with `yarn-submit run --tf1`. With
Saver(sharded=True) each parameter server writes its own part of
./train_logs/model.ckpt-N, and one of them reads all the parts' indexes. So
every task must see the same ./train_logs.

    python supervisor_sharded.py --job_name=worker --task_index=0 \
        --ps_hosts=ps0:2222,ps1:2222 --worker_hosts=w0:2222,w1:2222,w2:2222,w3:2222,w4:2222
"""
import argparse
import sys
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", required=True, help="host:port,host:port")
parser.add_argument("--worker_hosts", required=True, help="host:port,host:port")
parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
parser.add_argument("--task_index", type=int, required=True)
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--steps_per_sec", type=float, default=15, help="of all workers together; 0: as fast as it goes")
parser.add_argument("--save_secs", type=float, default=2, help="seconds between checkpoints")
parser.add_argument("--features", type=int, default=100000)
FLAGS = parser.parse_args()

PER_EXAMPLE = 8  # features that an example has


def examples(n):
    """Makes n examples, whose label follows from the parity of their features."""
    ids = np.random.randint(0, FLAGS.features, size=(n, PER_EXAMPLE))
    labels = (np.sum(ids % 2, axis=1) > PER_EXAMPLE / 2).astype(np.float32)
    return ids, labels


def main():
    ps_hosts = FLAGS.ps_hosts.split(",")
    worker_hosts = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": ps_hosts, "worker": worker_hosts})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        print("ps %d is ready" % FLAGS.task_index, flush=True)
        server.join()

    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % FLAGS.task_index, cluster=cluster)):
        ids = tf.placeholder(tf.int64, [None, PER_EXAMPLE])
        labels = tf.placeholder(tf.float32, [None])
        weights = tf.get_variable("weights", [FLAGS.features, 1], initializer=tf.zeros_initializer(),
                                  partitioner=tf.fixed_size_partitioner(len(ps_hosts)))
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        global_step = tf.Variable(0, name="global_step", trainable=False)
        logits = tf.reduce_sum(tf.nn.embedding_lookup(weights, ids, partition_strategy="div"), axis=[1, 2]) + bias
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
        train_op = tf.train.FtrlOptimizer(0.5).minimize(loss, global_step=global_step)
        saver = tf.train.Saver(sharded=True, max_to_keep=2)
        init_op = tf.global_variables_initializer()

    sv = tf.train.Supervisor(is_chief=is_chief,
                             logdir="./train_logs",
                             init_op=init_op,
                             summary_op=None,
                             saver=saver,
                             global_step=global_step,
                             save_model_secs=FLAGS.save_secs)
    # A worker needs the parameter servers and itself. Without this it would
    # wait for workers that have ended.
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:%d" % FLAGS.task_index])
    pause = len(worker_hosts) / FLAGS.steps_per_sec if FLAGS.steps_per_sec else 0
    with sv.managed_session(server.target, config=config) as sess:
        step = sess.run(global_step)
        print("worker %d begins at step %d" % (FLAGS.task_index, step), flush=True)
        while not sv.should_stop() and step < FLAGS.steps:
            batch_ids, batch_labels = examples(64)
            _, loss_v, step = sess.run([train_op, loss, global_step],
                                       feed_dict={ids: batch_ids, labels: batch_labels})
            if step % 20 == 0:
                print("step %d loss %.6f" % (step, loss_v), flush=True)
            time.sleep(pause)
        if is_chief:
            sv.stop()  # with it the thread that saves now and then: only one may save at a time
            saver.save(sess, sv.save_path, global_step=global_step)
    if step < FLAGS.steps:
        sys.exit("worker %d stopped at step %d of %d" % (FLAGS.task_index, step, FLAGS.steps))
    print("final step %d" % FLAGS.steps, flush=True)


if __name__ == "__main__":
    sys.exit(main())
