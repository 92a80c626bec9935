"""Runs a Python program as if it had been started itself, and takes 2 GiB once
there is a file "grow" in its working directory."""

import os
import runpy
import sys
import threading
import time


def grow():
    while not os.path.exists("grow"):
        time.sleep(0.2)
    taken = []
    for _ in range(64):
        taken.append(b"x" * (32 << 20))
        time.sleep(0.05)
    threading.Event().wait()


threading.Thread(target=grow, daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
