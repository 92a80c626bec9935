"""Ports that a framework listens on without SO_REUSEADDR."""

import errno
import socket
import time

# How long the kernel keeps the address of a closed connection (TIME_WAIT), and a little.
_EXPIRY_SECS = 65


def wait_until_free(port):
    """Waits until a port can be listened on: connections of the attempt before may not have
    expired. It returns at once where the agent sees to that (package container/steer), or
    where somebody listens there already; then it returns False."""
    deadline = time.monotonic() + _EXPIRY_SECS
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            try:
                s.bind(("", port))
                return True
            except OSError as e:
                if e.errno != errno.EADDRINUSE or time.monotonic() > deadline:
                    return False
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return False
        time.sleep(0.5)
