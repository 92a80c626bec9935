"""Runs torchft's lighthouse, as its own command does, from the arguments:

    python -m _holdfast.lighthouse --min_replicas 1 --bind [::]:29510

It has the path of no script that an archive may have moved, and does not import PyTorch: a
lighthouse that is lost is back at once, and takes 15 MB instead of some 400 MB.
"""

import os
import sys


def main():
    import importlib.util
    from importlib.machinery import PathFinder

    package = importlib.util.find_spec("torchft")
    if package is None:
        sys.exit("the lighthouse cannot start: %s has no torchft; install it into the environment that the job brings (pip install torchft)" % sys.executable)
    spec = PathFinder.find_spec("torchft._torchft", package.submodule_search_locations)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.lighthouse_main()


if __name__ == "__main__":
    if __package__:  # by -m: lighthouse_main wants its arguments behind a script's name
        os.execv(sys.executable, [sys.executable, os.path.abspath(__file__)] + sys.argv[1:])
    del sys.path[0]  # this directory has modules named as frameworks
    main()
