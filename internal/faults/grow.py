"""Runs a Python program as if it had been started itself, and takes memory
without end once there is a file "grow" in its working directory."""

import os
import runpy
import sys
import threading
import time


def grow():
    while not os.path.exists("grow"):
        time.sleep(0.2)
    taken = []
    while True:
        taken.append(b"x" * (32 << 20))
        time.sleep(0.05)


threading.Thread(target=grow, daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
