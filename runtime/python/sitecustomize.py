"""Holdfast's start-up file for the Python programs of a task.

Python imports the first sitecustomize on its path as it starts. What this one does
is in the package _holdfast beside it, which needs Python 3.7: TensorFlow has needed
it since 2.4.
"""

import sys

if sys.version_info >= (3, 7):
    from _holdfast import start

    start.run()
