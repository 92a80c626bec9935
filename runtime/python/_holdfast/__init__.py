"""What Holdfast does in the Python programs of a task.

start       runs in every Python as it starts, and imports nothing it need not
tensorflow  is imported when the program imports TensorFlow, as jax, xgboost and lightgbm
            are; another framework's module stands beside them, with a row in
            start.FRAMEWORKS
ray         is started in place of the command in tasks of Ray
ports       is for those that listen without SO_REUSEADDR
warm        runs in warm interpreters only (package container/warm); hidden, which it
            uses, puts away what an import changed
"""
