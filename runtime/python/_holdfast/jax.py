"""What Holdfast does in programs that import JAX, by this setting.

HOLDFAST_JAX_CLUSTER=0  jax.distributed.initialize finds no more than it does by itself,
    which is the coordinator's address; otherwise it needs no arguments.
"""

import os

_VARIABLES = ("JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID")


def hooks():
    """Called when JAX is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_JAX_CLUSTER") != "0":
        yield "jax._src.clusters", _add_cluster


def _add_cluster(clusters):
    """Adds a cluster to those that initialize looks for (jax/_src/clusters/cluster.py).
    It comes first: a node of the job may be one of a cluster of another kind as well,
    Kubernetes for one, which knows nothing of the job."""
    known = getattr(getattr(clusters, "ClusterEnv", None), "_cluster_types", None)
    if not isinstance(known, list):
        return  # then a script passes the arguments, as with any JAX

    class HoldfastCluster(clusters.ClusterEnv):
        name = "holdfast"

        @classmethod
        def is_env_present(cls):
            return all(v in os.environ for v in _VARIABLES)

        @classmethod
        def get_coordinator_address(cls, *args, **kwargs):  # which ones, depends on the version
            return os.environ["JAX_COORDINATOR_ADDRESS"]

        @classmethod
        def get_process_count(cls):
            return int(os.environ["JAX_NUM_PROCESSES"])

        @classmethod
        def get_process_id(cls):
            return int(os.environ["JAX_PROCESS_ID"])

    if HoldfastCluster in known:  # each adds itself as it is made
        known.remove(HoldfastCluster)
    known.insert(0, HoldfastCluster)
