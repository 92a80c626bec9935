"""Tests of the package _holdfast that need no framework: python -m unittest."""

import os
import subprocess
import sys
import tempfile
import unittest

SHIM = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SHIM)
sys.dont_write_bytecode = True

from _holdfast import tensorflow  # noqa: E402


def run(script, site="", **settings):
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "GRPC_"))}
    environ.update(settings, PYTHONPATH=os.pathsep.join(p for p in (SHIM, site) if p), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.check_output([sys.executable, "-c", script], env=environ, universal_newlines=True).strip()


class Start(unittest.TestCase):
    LOADED = "import sys; print(*sorted(m for m in sys.modules if m.startswith('_holdfast')))"

    def test_a_framework_costs_nothing_until_it_is_imported(self):
        loaded = run(self.LOADED, HOLDFAST_FRAMEWORK="tensorflow", HOLDFAST_TF1="1", HOLDFAST_FAIL_FAST="1")
        self.assertEqual(loaded, "_holdfast _holdfast.start")

    def test_its_module_comes_with_it(self):
        with tempfile.TemporaryDirectory() as site:
            os.mkdir(os.path.join(site, "tensorflow"))
            loaded = run("import tensorflow\n" + self.LOADED, site, HOLDFAST_FRAMEWORK="tensorflow")
            self.assertEqual(loaded, "_holdfast _holdfast.start _holdfast.tensorflow")
            # With no framework and no setting that asks for it, it stays away.
            self.assertEqual(run("import tensorflow\n" + self.LOADED, site), "_holdfast _holdfast.start")


class JAX(unittest.TestCase):
    CLUSTER = (
        "class ClusterEnv:\n"
        "    _cluster_types = []\n"
        "    def __init_subclass__(cls, **kwargs):\n"
        "        cls._cluster_types.append(cls)\n"
        "class K8sCluster(ClusterEnv): pass\n"
    )
    FIRST = (
        "import jax._src.clusters as c\n"
        "e = c.ClusterEnv._cluster_types[0]\n"
        "print(e.is_env_present(), e.get_coordinator_address(timeout_secs=1), e.get_process_count(), e.get_process_id())"
    )

    def jax(self, script, clusters, **settings):
        with tempfile.TemporaryDirectory() as site:
            package = os.path.join(site, "jax", "_src", "clusters")
            os.makedirs(package)
            for directory in ("jax", "jax/_src"):
                open(os.path.join(site, directory, "__init__.py"), "w").close()
            with open(os.path.join(package, "__init__.py"), "w") as f:
                f.write(clusters)
            return run(script, site, HOLDFAST_FRAMEWORK="jax", **settings)

    def test_initialize_finds_the_job(self):
        job = {"JAX_COORDINATOR_ADDRESS": "worker-0:20000", "JAX_NUM_PROCESSES": "3", "JAX_PROCESS_ID": "2"}
        self.assertEqual(self.jax(self.FIRST, self.CLUSTER, **job), "True worker-0:20000 3 2")

    def test_it_can_be_switched_off(self):
        names = "import jax._src.clusters as c; print([e.__name__ for e in c.ClusterEnv._cluster_types])"
        self.assertEqual(self.jax(names, self.CLUSTER, HOLDFAST_JAX_CLUSTER="0"), "['K8sCluster']")
        self.assertEqual(self.jax(names, self.CLUSTER), "['HoldfastCluster', 'K8sCluster']")

    def test_another_version_is_left_alone(self):
        self.assertEqual(self.jax("import jax._src.clusters as c; print(hasattr(c, 'ClusterEnv'))", ""), "False")
        self.assertEqual(self.jax("import jax._src.clusters as c; print(c.ClusterEnv())", "class ClusterEnv:\n    def __repr__(self): return 'other'"), "other")


class TensorFlow(unittest.TestCase):
    def test_codes_of_parts(self):
        for message, codes in (
            ("\nABORTED: From /job:ps/task:0:\ngone\nCANCELLED: From /job:worker/task:1:\n", {"ABORTED", "CANCELLED"}),
            ("\nCANCELLED: RunManyGraphs\nABORTED: From /job:ps/task:0:\n", set()),
            ("a queue was closed", set()),
        ):
            self.assertEqual(tensorflow._codes_of_parts(message), codes, message)

    def test_devices_elsewhere(self):
        for device, elsewhere in (
            ("", False),
            ("/job:ps/task:1", False),
            ("/job:worker/task:0/cpu:0", False),
            ("/job:worker/task:1", True),
            ("/job:worker", True),
            ("/task:0", True),
        ):
            self.assertEqual(tensorflow._DeviceFilters._elsewhere(device, "worker", 0), elsewhere, device)


if __name__ == "__main__":
    unittest.main()
