"""What Holdfast does in programs that import LightGBM, by this setting.

HOLDFAST_LIGHTGBM_CLUSTER=0  LightGBM has the parameters that the script sets only;
    otherwise those that say where the other machines are, too, if the script asks for a
    distributed tree_learner and does not say where they are.
"""

import functools
import os

from . import ports

_VARIABLES = ("LIGHTGBM_MACHINES", "LIGHTGBM_NUM_MACHINES", "LIGHTGBM_LOCAL_LISTEN_PORT")

# Parameters and their aliases, and the values of tree_learner that are distributed
# (docs/Parameters.rst).
_LEARNER = ("tree_learner", "tree", "tree_type", "tree_learner_type")
_MACHINES = ("machines", "workers", "nodes")
_DISTRIBUTED = ("feature", "data", "voting", "feature_parallel", "data_parallel", "voting_parallel")


def hooks():
    """Called when LightGBM is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_LIGHTGBM_CLUSTER") != "0" and all(v in os.environ for v in _VARIABLES):
        yield "lightgbm.basic", _find_the_job


def _find_the_job(basic):
    """Has Booster, which sets up the network when it is made for training, find the machines
    (lightgbm/basic.py)."""
    make = basic.Booster.__init__

    @functools.wraps(make)
    def find_and_make(self, params=None, train_set=None, *args, **kwargs):
        if train_set is not None and _asks_for_machines(params):
            port = int(os.environ["LIGHTGBM_LOCAL_LISTEN_PORT"])
            params = dict(
                params,
                machines=os.environ["LIGHTGBM_MACHINES"],
                num_machines=int(os.environ["LIGHTGBM_NUM_MACHINES"]),
                local_listen_port=port,
            )
            ports.wait_until_free(port)
        make(self, params, train_set, *args, **kwargs)

    basic.Booster.__init__ = find_and_make


def _asks_for_machines(params):
    params = params or {}
    learner = next((params[name] for name in _LEARNER if params.get(name) is not None), None)
    return learner in _DISTRIBUTED and all(params.get(name) is None for name in _MACHINES) and os.environ["LIGHTGBM_NUM_MACHINES"] != "1"
