"""Parameter servers and workers with Supervisor, to be relaunched after a failure.

Learns a linear model of ten weights with plain gradient descent. Written for
TensorFlow 1; on TensorFlow 2 it runs with `yarn-submit run --tf1`. Worker 0
saves ./train_logs/model.ckpt-N. Supervisor does not outlive the loss of a
parameter server: every worker ends with an error, and once all of them run
again, worker 0 restores the newest checkpoint, which each parameter server
reads for itself. So every task must see the same ./train_logs.

    python supervisor.py --job_name=worker --task_index=0 \
        --ps_hosts=ps0:2222,ps1:2222 --worker_hosts=w0:2222,w1:2222
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
FLAGS = parser.parse_args()


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
        x = tf.placeholder(tf.float32, [None, 10])
        y_ = tf.placeholder(tf.float32, [None, 1])
        w = tf.Variable(tf.truncated_normal([10, 1], stddev=0.1), name="weights")
        b = tf.Variable(tf.zeros([1]), name="bias")
        global_step = tf.Variable(0, name="global_step", trainable=False)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y_))
        train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=global_step)
        saver = tf.train.Saver()
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
    truth = np.arange(1, 11, dtype=np.float32).reshape(10, 1)
    with sv.managed_session(server.target, config=config) as sess:
        step = sess.run(global_step)
        print("worker %d begins at step %d" % (FLAGS.task_index, step), flush=True)
        while not sv.should_stop() and step < FLAGS.steps:
            batch = np.random.rand(32, 10).astype(np.float32)
            _, loss_v, step = sess.run([train_op, loss, global_step], feed_dict={x: batch, y_: batch.dot(truth)})
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
