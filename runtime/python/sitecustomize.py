"""Holdfast's start-up file for the Python programs of a task.

Python imports the first sitecustomize on its path as it starts. What this one does
is in the package _holdfast beside it.
"""

from _holdfast import start

start.run()
