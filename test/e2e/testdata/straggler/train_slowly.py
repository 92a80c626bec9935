"""Runs a training program which, in containers that a file names, computes for longer.

    python train_slowly.py FILE train.py ARGUMENTS...
"""
import os
import runpy
import sys
import time

import torch

NAMES = sys.argv[1]
SECONDS = 0.25  # of computing, beside what a step needs
mse_loss = torch.nn.functional.mse_loss


def slow_loss(*args):
    begin = time.process_time()
    with open(NAMES) as f:
        slow = any(name in os.getcwd() for name in f.read().split())
    while slow and time.process_time() - begin < SECONDS:
        torch.rand(64, 64) @ torch.rand(64, 64)
    return mse_loss(*args)


torch.nn.functional.mse_loss = slow_loss
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
