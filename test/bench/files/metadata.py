"""Times operations on many names in the working directory.

metadata.py N prints a line "OPERATION seconds" for each operation, done N times.
"""
import os
import sys
import time


def create(i):
    os.close(os.open("f%d" % i, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


OPERATIONS = [
    ("mkdir", lambda i: os.mkdir("d%d" % i)),
    ("create", create),
    ("stat", lambda i: os.stat("f%d" % i)),
    ("rename", lambda i: os.rename("f%d" % i, "d0/f%d" % i)),
    ("remove", lambda i: os.remove("d0/f%d" % i)),
]

count = int(sys.argv[1])
for name, operation in OPERATIONS:
    begin = time.monotonic()
    for i in range(count):
        operation(i)
    print(name, time.monotonic() - begin)
for i in range(count):
    os.rmdir("d%d" % i)
