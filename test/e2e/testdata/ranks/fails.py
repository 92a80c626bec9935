"""Ranks of PyTorch that fail as the first argument says.

one: in the first attempt rank 2 raises an error in the middle of the training. Its
     connections are closed at once, but it ends only when it is told to, after its peers
     have complained.
all: each rank raises the same error before its first step, in each attempt.
recorded: as one, but each rank's error is recorded as torch.distributed.elastic does.
launched: that, but rank 2 ends at once, and its peers a little later, or when they are told to:
     a launcher that is told to end loses the error of its process. That of PyTorch 1.13 waits
     until the processes of all have ended.
"""
import atexit
import os
import signal
import sys
import threading

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

kind = sys.argv[1]
told = threading.Event()


def leave_last():
    """Ends this process only once it was told to end, or after a while."""
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    atexit.register(lambda: told.wait(5 if kind == "launched" else 60))


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if kind == "all":
        {}["lr"]
    for step in range(1, 31):
        x = torch.ones(1)
        if step == 20 and os.environ["HOLDFAST_ATTEMPT"] == "0":
            if (rank == 2) != (kind == "launched"):
                leave_last()
            if rank == 2:
                dist.destroy_process_group()
                raise ValueError("bad batch in step %d" % step)
        dist.all_reduce(x)
        print("step", step, flush=True)
    dist.barrier()
    dist.destroy_process_group()  # a process that ends with Gloo's threads may abort


if kind in ("recorded", "launched"):
    main = record(main)
main()
