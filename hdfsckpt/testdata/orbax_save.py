# Writes the directory orbax-10; recorded with orbax-checkpoint 0.12.8 and jax 0.10.2.
import os

import numpy
import orbax.checkpoint as ocp

with ocp.CheckpointManager(os.path.abspath("saved")) as manager:
    manager.save(10, args=ocp.args.StandardSave({"w": numpy.arange(4.0), "b": numpy.float32(1)}))
    manager.wait_until_finished()
os.rename("saved/10", "orbax-10")
