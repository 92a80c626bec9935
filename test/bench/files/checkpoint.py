"""Saves and restores a sharded checkpoint in two directories, in turn.

checkpoint.py MB ROUNDS NAME=DIRECTORY... prints a line "NAME seconds-to-save
seconds-to-restore" for each round and directory; the first round, which warms
the caches, is not printed.
"""
import glob
import os
import sys
import time

import tensorflow as tf

SHARDS = 4
v1 = tf.compat.v1
v1.disable_v2_behavior()


def main(mb, rounds, places):
    variables = []
    for i in range(SHARDS):
        with tf.device("/cpu:%d" % i):
            start = tf.random.stateless_uniform([mb // SHARDS, 1 << 18], seed=[i, 0])
            variables.append(v1.get_variable("v%d" % i, initializer=start, use_resource=True))
    saver = v1.train.Saver(variables, sharded=True, max_to_keep=1)
    config = v1.ConfigProto(device_count={"CPU": SHARDS})
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        for step in range(rounds + 1):
            for name, directory in places:
                begin = time.monotonic()
                path = saver.save(session, os.path.join(directory, "model"), global_step=step,
                                  write_meta_graph=False)
                saved = time.monotonic()
                saver.restore(session, path)
                restored = time.monotonic()
                found = glob.glob(path + ".data-*-of-%05d" % SHARDS)
                if len(found) != SHARDS:
                    sys.exit("%s has %d shards" % (path, len(found)))
                if step > 0:
                    print(name, saved - begin, restored - saved, flush=True)
                for file in found:
                    os.remove(file)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), [a.split("=", 1) for a in sys.argv[3:]])
