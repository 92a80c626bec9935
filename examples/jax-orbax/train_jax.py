"""Data-parallel training with JAX, with Orbax's checkpoints.

Each process computes on its part of the batch, and JAX adds the gradients up. Orbax
writes ./train_logs/N and gives it its name when all of it is there. When a process is
lost all start again, and go on from the newest: so every process must see the same
./train_logs. jax.distributed.initialize() needs no arguments.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/jax \
        --files train_jax.py -- python train_jax.py --steps 200
"""
import argparse
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()


@jax.jit
def update(state, x):
    def loss(weights):
        return jnp.mean((x @ weights - x.sum(1, keepdims=True)) ** 2)

    value, gradient = jax.value_and_grad(loss)(state["weights"])
    momentum = 0.9 * state["momentum"] + gradient
    return {"weights": state["weights"] - 0.02 * momentum, "momentum": momentum}, value


def main():
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize()
    rank, world = jax.process_index(), jax.process_count()
    mesh = Mesh(np.array(jax.devices()), ("data",))
    everywhere, split = NamedSharding(mesh, PartitionSpec()), NamedSharding(mesh, PartitionSpec("data"))
    zeros = np.zeros((10, 1), np.float32)
    state = {name: jax.make_array_from_process_local_data(everywhere, zeros) for name in ("weights", "momentum")}

    manager = ocp.CheckpointManager(os.path.abspath("./train_logs"), options=ocp.CheckpointManagerOptions(max_to_keep=3))
    step = manager.latest_step() or 0
    if step:
        state = manager.restore(step, args=ocp.args.StandardRestore(state))
    print("process %d of %d begins at step %d" % (rank, world, step), flush=True)

    data = np.random.default_rng(rank)
    while step < FLAGS.steps:
        local = data.random((32, 10), np.float32)
        state, loss = update(state, jax.make_array_from_process_local_data(split, local))
        loss = float(loss)
        step += 1
        if rank == 0 and step % 5 == 0:
            print("step %d loss %.6f" % (step, loss), flush=True)
        if step % FLAGS.save_steps == 0 or step == FLAGS.steps:
            manager.save(step, args=ocp.args.StandardSave(state))
        time.sleep(FLAGS.step_secs)
    manager.wait_until_finished()
    manager.close()
    jax.distributed.shutdown()
    print("final step %d" % step, flush=True)


if __name__ == "__main__":
    main()
