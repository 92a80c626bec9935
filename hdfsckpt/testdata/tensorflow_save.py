"""Saves with the real TensorFlow in the ways that programs do, tells what it
saved as one line of JSON, and restores from where it is then told to.

    python tensorflow_save.py DIRECTORY
"""
import json
import os
import socket
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

top = sys.argv[1]
told = {}


def free_port():
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return s.getsockname()[1]


def manager():
    """CheckpointManager, which deletes old checkpoints."""
    net = tf.Module()
    net.w = tf.Variable(tf.random.stateless_normal([30, 20], [1, 2]))
    net.name_ = tf.Variable("größe")
    step = tf.Variable(0, dtype=tf.int64)
    m = tf.train.CheckpointManager(tf.train.Checkpoint(net=net, step=step), os.path.join(top, "managed"), max_to_keep=2)
    for _ in range(3):
        step.assign_add(10)
        net.w.assign_add(tf.ones_like(net.w))
        m.save(checkpoint_number=step)
    told["managed"] = {"w": net.w.numpy().ravel().tolist()}


def servers():
    """tf.train.Checkpoint under ParameterServerStrategy: each parameter server
    writes its part, and one variable is in pieces."""
    spec = {"worker": ["localhost:%d" % free_port()], "ps": ["localhost:%d" % free_port() for _ in range(2)]}
    cluster = tf.train.ClusterSpec(spec)
    kept = [tf.distribute.Server(cluster, job_name=j, task_index=i, protocol="grpc") for j, hosts in spec.items() for i in range(len(hosts))]
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, rpc_layer="grpc")
    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=tf.distribute.experimental.partitioners.FixedShardsPartitioner(2))
    with strategy.scope():
        table = tf.Variable(np.arange(70, dtype=np.float32).reshape(14, 5), name="table")
        scalar = tf.Variable(3.5)
    tf.train.Checkpoint(table=table, scalar=scalar).save(os.path.join(top, "servers", "ck"))
    told["servers"] = {"table": np.arange(70).tolist()}
    return kept, strategy


manager()
alive = servers()
print(json.dumps(told), flush=True)
copy = sys.stdin.readline().strip()
newest = tf.train.latest_checkpoint(copy)
net, step = tf.Module(), tf.Variable(0, dtype=tf.int64)
net.w, net.name_ = tf.Variable(tf.zeros([30, 20])), tf.Variable("")
tf.train.Checkpoint(net=net, step=step).restore(newest).assert_existing_objects_matched()
print(json.dumps({"newest": os.path.basename(newest), "step": int(step.numpy()), "w": net.w.numpy().ravel().tolist()}), flush=True)
os._exit(0)  # the servers have no end
