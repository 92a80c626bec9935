"""Runs a Python program as if it had been started itself, and takes memory once
there is a file "grow" in its working directory: as many MiB as that says, else 2048.
Where it says "ignore SIGTERM", the program does so from then on."""

import ctypes
import os
import runpy
import signal
import sys
import threading
import time


def grow():
    while not os.path.exists("grow"):
        time.sleep(0.2)
    with open("grow") as f:
        words = f.read().split()
    if "SIGTERM" in words:
        ctypes.CDLL(None).signal(int(signal.SIGTERM), ctypes.c_void_p(1))  # SIG_IGN; Python's own is for its main thread
    taken = []
    for _ in range((int(words[0]) if words else 2048) // 32):
        taken.append(b"x" * (32 << 20))
        time.sleep(0.05)
    threading.Event().wait()


threading.Thread(target=grow, daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
