"""Tests of the package _holdfast that need no framework: python -m unittest. SHIM is
where the package is, if it is not beside this directory."""

import array
import concurrent.futures
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
import zipfile

SHIM = os.environ.get("SHIM") or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, SHIM)
sys.dont_write_bytecode = True

from _holdfast import start, tensorflow  # noqa: E402


def run(script, site="", **settings):
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "GRPC_"))}
    environ.update(settings, PYTHONPATH=os.pathsep.join(p for p in (SHIM, site) if p), PYTHONDONTWRITEBYTECODE="1")
    return subprocess.check_output([sys.executable, "-c", script], env=environ, universal_newlines=True).strip()


def write(site, modules):
    """Makes modules, by the names of their files."""
    for name, text in modules.items():
        os.makedirs(os.path.dirname(os.path.join(site, name)), exist_ok=True)
        with open(os.path.join(site, name), "w") as f:
            f.write(text)


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

    def test_each_setting_can_be_switched_off(self):
        for name in start.FRAMEWORKS["tensorflow"]:
            said = run("from _holdfast import tensorflow; tensorflow.prepare(); print(*tensorflow.hooks(), *[k for k in __import__('os').environ if k.startswith('GRPC_')])", **{name: "0"})
            self.assertEqual(said, "", name)


    def test_an_action_is_for_its_module_alone(self):
        # Modules of one directory of a ZIP file have one loader.
        modules = {"accelerate/__init__.py": "", "accelerate/state.py": "from . import other", "accelerate/other.py": "CustomArgumentParser = 1"}
        script = (
            "from _holdfast import accelerate\n"
            "accelerate._use_cpus = lambda module: print(module.__name__)\n"
            "import accelerate.state"
        )
        with tempfile.TemporaryDirectory() as site:
            file = os.path.join(site, "site.zip")
            with zipfile.ZipFile(file, "w") as z:
                for name, text in modules.items():
                    z.writestr(name, text)
            said = run(script, file, **Accelerate.JOB)
        # Before Python 3.10 loaders of ZIP files are of a kind that is left alone.
        self.assertEqual(said, "accelerate.state" if sys.version_info >= (3, 10) else "")

    def test_a_framework_of_an_unknown_version_is_imported_all_the_same(self):
        modules = {"horovod/__init__.py": "", "horovod/common/__init__.py": "", "horovod/common/basics.py": ""}
        job = {"HOROVOD_SIZE": "1", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "worker-0", "HOROVOD_GLOO_RENDEZVOUS_PORT": "20000"}
        for rank in "0", "no number":
            with tempfile.TemporaryDirectory() as site:
                write(site, modules)
                said = run("import sys; sys.stderr = sys.stdout; import horovod.common.basics; print('goes on')", site, HOLDFAST_FRAMEWORK="horovod", HOROVOD_RANK=rank, **job)
            self.assertRegex(said, "^holdfast: .*horovod.*(AttributeError|ValueError).*\ngoes on$")


class Sitecustomize(unittest.TestCase):
    """Other start-up files, beside Holdfast's."""

    # As those of agents that trace programs: it runs the next one on the path itself.
    CHAIN = """
import os, sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
print("first")
here = os.path.dirname(os.path.abspath(__file__))
spec = PathFinder.find_spec("sitecustomize", [p for p in sys.path if os.path.abspath(p) != here])
if spec is not None:
    spec.loader.exec_module(module_from_spec(spec))
"""
    # The same by taking itself off the path.
    IMPORT = """
import os, sys
print("first")
here = os.path.dirname(os.path.abspath(__file__))
sys.path.remove(here)
own = sys.modules.pop("sitecustomize")
import sitecustomize
sys.path.append(here)
"""
    SCRIPT = "import sys; print(len([f for f in sys.meta_path if type(f).__module__.startswith('_holdfast')]))"

    def test_one_that_runs_the_next_finds_each_once(self):
        for first in self.CHAIN, self.IMPORT:
            for second, said in ("print('second')", "first second 1"), (None, "first 1"):
                with tempfile.TemporaryDirectory() as site:
                    write(site, {"first/sitecustomize.py": first})
                    if second:
                        write(site, {"second/sitecustomize.py": second})
                    path = os.pathsep.join(os.path.join(site, d) for d in ("first", "second"))
                    self.assertEqual(run(self.SCRIPT, path, HOLDFAST_TF1="1").split(), said.split())

    def test_a_python_that_is_too_old_runs_the_hidden_one(self):
        script = (
            "import sys\n"
            "sys.version_info = (3, 6, 15, 'final', 0)\n"
            "sys.path[:0] = sys.argv[1:]\n"
            "import sitecustomize\n"
            "print(sys.modules['sitecustomize'].value, *[m for m in sys.modules if m == 'faulthandler'])\n" + self.SCRIPT
        )
        with tempfile.TemporaryDirectory() as site:
            write(site, {"other/sitecustomize.py": "value = 7"})
            said = subprocess.check_output([sys.executable, "-S", "-c", script, SHIM, os.path.join(site, "other")], env=dict(os.environ, HOLDFAST_TF1="1", PYTHONDONTWRITEBYTECODE="1"), universal_newlines=True)
        self.assertEqual(said.split(), ["7", "0"])


@contextlib.contextmanager
def own_shim():
    """A copy of the shim, beside which notes may be left."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(os.path.join(SHIM, "_holdfast"), os.path.join(directory, "_holdfast"))
        shutil.copy(os.path.join(SHIM, "sitecustomize.py"), directory)
        yield directory


class Note(unittest.TestCase):
    """What an attempt leaves for the next interpreter to be kept warm."""

    def note(self, script, module="torch", **settings):
        with own_shim() as shim, tempfile.TemporaryDirectory() as site:
            write(site, {module + "/__init__.py": ""})
            environ = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
            environ.update(settings, HOLDFAST_WARM=module, PYTHONPATH=os.pathsep.join((shim, site)), PYTHONDONTWRITEBYTECODE="1")
            p = subprocess.run([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, start_new_session=True)
            self.assertEqual((p.returncode, p.stdout), (0, ""))
            notes = [n for n in os.listdir(shim) if n.startswith("imported-")]
            self.assertEqual([n for n in notes if not n.endswith(".json")], [])
            if not notes:
                return None
            with open(os.path.join(shim, notes[0])) as f:
                return json.load(f)

    def test_it_says_with_what_the_module_is_imported(self):
        note = self.note("import os, sys; os.environ['A'] = 'b'; del os.environ['PATH']; sys.path.append('/c'); import torch")
        self.assertEqual((note["environ"], note["path"][-1], note["refused"]), ({"A": "b", "PATH": None}, "/c", ""))

    def test_looking_for_a_module_is_not_importing_it(self):
        self.assertIsNone(self.note("import importlib.util; importlib.util.find_spec('torch')"))
        note = self.note("import importlib.util, os; importlib.util.find_spec('torch'); os.environ['A'] = 'b'; import torch")
        self.assertEqual(note["environ"], {"A": "b"})

    def test_it_does_not_tell_what_holdfast_sets(self):
        # The next import sets it again, and then gives it to its attempts.
        note = self.note(
            "from _holdfast import tensorflow\n"
            "tensorflow._tensorflow_version = lambda: (2, 21)\n"
            "import os, importlib.util\n"
            "importlib.util.find_spec('tensorflow')\n"
            "assert 'GRPC_FAIL_FAST' not in os.environ\n"
            "import tensorflow\n"
            "assert 'GRPC_FAIL_FAST' in os.environ",
            "tensorflow",
            HOLDFAST_FAIL_FAST="1",
        )
        self.assertEqual(note["environ"], {})

    def test_a_module_of_the_scripts_own_making_is_no_hindrance(self):
        script = "import sys\nclass Lazy:\n    def __getattr__(self, name): raise RuntimeError(name)\nsys.modules['own'] = Lazy()\nimport torch"
        self.assertIn("a module own", self.note(script)["refused"])

    def test_a_program_with_what_cannot_be_noted_goes_on(self):
        for unusual in (
            "import pathlib; sys.path.append(pathlib.Path('/c'))",
            "sys.path.append('/\\udcff')",
            "os.environ['A'] = '\\udcff'",
        ):
            note = self.note("import os, sys; %s; import torch" % unusual)
            self.assertIn("text", note["refused"], unusual)


class Warm(unittest.TestCase):
    def serve(self, own="", script="print('the script')", attempt=False):
        """What a warm interpreter answers, and then prints, with a sitecustomize of its own:
        what the script prints, if it becomes an attempt."""
        with tempfile.TemporaryDirectory() as site:
            lib = os.path.join(site, "lib")
            write(site, {"sitecustomize.py": own, "train.py": script, "lib/module/__init__.py": "print('imported')", "lib/module/part.py": ""})
            agent, interpreter = socket.socketpair()
            environ = dict(os.environ, HOLDFAST_WARM="module", HOLDFAST_WARM_SOCKET=str(interpreter.fileno()), PYTHONPATH=os.pathsep.join((SHIM, site, lib)), PYTHONDONTWRITEBYTECODE="1")
            argv = [sys.executable, os.path.join(site, "train.py")]
            p = subprocess.Popen(argv, env=environ, pass_fds=[interpreter.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
            interpreter.close()

            def send(message, fds=()):
                message = json.dumps(message).encode()
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
                agent.sendmsg([len(message).to_bytes(4, "big") + message], rights)

            with agent, agent.makefile("rb") as stream, tempfile.TemporaryFile("w+") as output:
                send({"path": [site, lib] + sys.path, "environ": {}})
                try:
                    answer = json.loads(stream.read(int.from_bytes(stream.read(4), "big")).decode() or "null")
                except ConnectionResetError:
                    answer = None
                if attempt:
                    del environ["HOLDFAST_WARM_SOCKET"]
                    send({"argv": argv, "environ": list(environ.items()), "dir": site, "stay": True}, [output.fileno()])
                    p.communicate()
                    output.seek(0)
                    return output.read().replace(site, "SITE").split("\n")[:-1]
            return (answer,) + p.communicate() + (p.returncode,)

    READY = {"ready": True, "common": 2}

    def test_it_never_runs_the_script_itself(self):
        self.assertEqual(self.serve(), (self.READY, "", "", 0))
        answer, out, err, code = self.serve("raise ValueError('of its own')")
        self.assertEqual((answer, out, code), (self.READY, "", 0), err)

    def test_it_needs_no_function_that_not_every_python_has(self):
        lacking = "import os, signal\nfor m, n in (os, 'memfd_create'), (signal, 'valid_signals'):\n    if hasattr(m, n): delattr(m, n)"
        self.assertEqual(self.serve(lacking), (self.READY, "", "", 0))


    def test_a_module_that_is_not_imported_yet_is_found_as_ever(self):
        script = """
import importlib.util, sys
for name in "module", "module.part":
    spec = importlib.util.find_spec(name)
    print(spec.name, spec.origin, spec.submodule_search_locations, spec.has_location, spec.parent)
import module.part
print(module.__spec__.origin, module.__file__, importlib.util.find_spec("module") is module.__spec__)
"""
        said = self.serve(script=script, attempt=True)
        self.assertIn("imported", said)
        self.assertEqual([line for line in said if line != "imported"], [
            "module SITE/lib/module/__init__.py ['SITE/lib/module'] True module",
            "module.part SITE/lib/module/part.py None True module",
            "SITE/lib/module/__init__.py SITE/lib/module/__init__.py True",
        ])


class Stacks(unittest.TestCase):
    # What the signal does shows in how the program ends.
    QUIT = "import os, signal\ndef standing_here(): os.kill(os.getpid(), signal.SIGQUIT)\nstanding_here()\nprint('goes on')"

    def quit(self, **settings):
        environ = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
        environ.update(settings, PYTHONPATH=SHIM, PYTHONDONTWRITEBYTECODE="1")
        no_core = lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        p = subprocess.run([sys.executable, "-c", self.QUIT], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, preexec_fn=no_core)
        return p.returncode, p.stdout, p.stderr

    def test_sigquit_has_the_program_write_where_it_stands(self):
        code, said, stack = self.quit()
        self.assertEqual((code, said), (0, "goes on\n"))
        self.assertIn("standing_here", stack)

    def test_it_can_be_switched_off(self):
        self.assertEqual(self.quit(HOLDFAST_STACKS="0"), (-signal.SIGQUIT, "", ""))


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


class XGBoost(unittest.TestCase):
    COLLECTIVE = (
        "def init(**args): print(*('%s=%r' % i for i in sorted(args.items())))\n"
        "def finalize(): pass\n"
    )
    JOB = {"DMLC_TRACKER_URI": "worker-0", "DMLC_TRACKER_PORT": "20000", "DMLC_TASK_ID": "03", "DMLC_NUM_WORKER": "11"}
    FILLED = "dmlc_task_id='03' dmlc_tracker_port=20000 dmlc_tracker_uri='worker-0'"

    def init(self, arguments, **settings):
        with tempfile.TemporaryDirectory() as site:
            os.mkdir(os.path.join(site, "xgboost"))
            open(os.path.join(site, "xgboost", "__init__.py"), "w").close()
            with open(os.path.join(site, "xgboost", "collective.py"), "w") as f:
                f.write(self.COLLECTIVE)
            script = "from xgboost import collective\ncollective.init(%s)" % arguments
            return run(script, site, HOLDFAST_FRAMEWORK="xgboost", **dict(self.JOB, **settings))

    def test_init_finds_the_job(self):
        for given in ("", "dmlc_tracker_uri='worker-0', dmlc_tracker_port='20000'", "dmlc_communicator='rabit'"):
            filled = self.init(given).replace("'20000'", "20000").replace("dmlc_communicator='rabit' ", "")
            self.assertEqual(filled, self.FILLED, given)
        self.assertEqual(self.init("dmlc_task_id='own'"), self.FILLED.replace("03", "own"))

    def test_other_groups_are_left_alone(self):
        for given in ("dmlc_tracker_uri='elsewhere'", "dmlc_tracker_port=1", "dmlc_communicator='federated'"):
            self.assertEqual(self.init(given), given)
        self.assertEqual(self.init("", HOLDFAST_XGBOOST_CLUSTER="0"), "")


class DeepSpeed(unittest.TestCase):
    MODULES = {
        "deepspeed/__init__.py": "",
        "deepspeed/accelerator/__init__.py": "",
        "deepspeed/accelerator/cuda_accelerator.py": "class CUDA_Accelerator:\n"
        "    def set_visible_devices_envs(self, env, ids): env['CUDA_VISIBLE_DEVICES'] = ','.join(map(str, ids))\n",
        "deepspeed/launcher/__init__.py": "",
        "deepspeed/launcher/runner.py": "import os, sys\n"
        "def main():\n"
        "    for a in sys.argv[1:]:\n"
        "        name, _, value = a.partition('=')\n"
        "        print(open(value).read().split('\\n') if name == '--hostfile' else a)\n"
        "    print(os.environ.get('LOCAL_WORLD_SIZE'))\n"
        "if __name__ == '__main__': main()\n",
    }
    JOB = {
        "HOLDFAST_DEEPSPEED_CLUSTER": "1", "HOLDFAST_DEEPSPEED_HOSTS": "worker-0:1,worker-1:2", "NODE_RANK": "1",
        "MASTER_ADDR": "worker-0", "MASTER_PORT": "20000", "LOCAL_WORLD_SIZE": "1",
    }
    TOLD = ["--no_ssh", "--node_rank=1", "--master_addr=worker-0", "--master_port=20000", "train.py", "None"]

    def deepspeed(self, launcher, beside="", **settings):
        with tempfile.TemporaryDirectory() as site:
            write(site, self.MODULES)
            if not launcher.startswith("-"):
                write(site, {"bin/" + launcher: "from deepspeed.launcher.runner import main\nmain()\n"})
                launcher = os.path.join(site, "bin", launcher)
            environ = {k: v for k, v in os.environ.items() if not k.startswith("HOLDFAST_")}
            environ.update(dict(self.JOB, **settings), PYTHONPATH=os.pathsep.join((SHIM, site, beside)), PYTHONDONTWRITEBYTECODE="1", TMPDIR=site)
            return subprocess.check_output([sys.executable] + launcher.split() + ["train.py"], env=environ, universal_newlines=True).split("\n")[:-1]

    def test_the_launcher_of_each_task_starts_its_own(self):
        hosts = str(["worker-0 slots=1", "worker-1 slots=2", ""])
        for launcher in "deepspeed", "ds", "-m deepspeed.launcher.runner":
            self.assertEqual(self.deepspeed(launcher), [hosts] + self.TOLD, launcher)

    def test_a_python_before_3_10_launches_by_m(self):
        with tempfile.TemporaryDirectory() as site:
            write(site, {"sitecustomize.py": "import sys\nif hasattr(sys, 'orig_argv'): del sys.orig_argv"})
            for words in "-m deepspeed.launcher.runner", "-mdeepspeed.launcher.runner":
                self.assertEqual(self.deepspeed(words, beside=site)[1:], self.TOLD, words)

    def test_a_single_task_is_called_as_without_a_hostfile(self):
        self.assertEqual(self.deepspeed("deepspeed", HOLDFAST_DEEPSPEED_HOSTS="worker-0:4")[0], str(["localhost slots=4", ""]))

    def test_other_programs_are_told_nothing(self):
        self.assertEqual(self.deepspeed("train"), ["train.py", "1"])
        self.assertEqual(self.deepspeed("deepspeed", HOLDFAST_DEEPSPEED_CLUSTER="0"), ["train.py", "1"])

    def test_gpus_are_the_tasks(self):
        script = (
            "from deepspeed.accelerator.cuda_accelerator import CUDA_Accelerator\n"
            "env = {}\n"
            "CUDA_Accelerator().set_visible_devices_envs(env, [0, 2])\n"
            "print(env['CUDA_VISIBLE_DEVICES'])\n"
        )
        with tempfile.TemporaryDirectory() as site:
            write(site, self.MODULES)
            self.assertEqual(run(script, site, **dict(self.JOB, CUDA_VISIBLE_DEVICES="5,6,GPU-7")), "5,GPU-7")
            self.assertEqual(run(script, site, **dict(self.JOB, CUDA_VISIBLE_DEVICES="5,6")), "0,2")
            self.assertEqual(run(script, site, **dict(self.JOB, CUDA_VISIBLE_DEVICES="")), "0,2")


class Accelerate(unittest.TestCase):
    MODULES = {
        "torch/__init__.py": "import os\n"
        "class accelerator:\n"
        "    def is_available(): return 'GPU' in os.environ\n",
        "accelerate/__init__.py": "from . import state",
        "accelerate/state.py": "",
        "accelerate/commands/__init__.py": "",
        "accelerate/commands/config/__init__.py": "",
        "accelerate/commands/config/config_args.py": "import os\ndefault_config_file = os.environ.get('CONFIG', '')",
        "accelerate/commands/utils.py": "import argparse\nclass CustomArgumentParser(argparse.ArgumentParser): pass",
    }
    SCRIPT = (
        "import os\n"
        "from accelerate.commands.utils import CustomArgumentParser\n"
        "p = CustomArgumentParser()\n"
        "for n in 'num_machines', 'num_processes', 'machine_rank', 'main_process_port': p.add_argument('--' + n, type=int)\n"
        "for n in 'cpu', 'multi_gpu', 'use_fsdp': p.add_argument('--' + n, action='store_true')\n"
        "for n in 'main_process_ip', 'config_file': p.add_argument('--' + n)\n"
        "p.add_argument('training_script')\n"
        "a = p.parse_args(%r)\n"
        "print(a.num_machines, a.num_processes, a.machine_rank, a.main_process_ip, a.main_process_port, 'cpu' * a.cpu + 'torchrun' * a.multi_gpu, os.environ.get('ACCELERATE_USE_CPU'))\n"
    )
    JOB = {
        "HOLDFAST_ACCELERATE_CLUSTER": "1", "GROUP_WORLD_SIZE": "2", "NODE_RANK": "1", "MASTER_ADDR": "worker-0",
        "MASTER_PORT": "20000", "PET_NPROC_PER_NODE": "1", "WORLD_SIZE": "2",
    }

    def accelerate(self, script, **settings):
        with tempfile.TemporaryDirectory() as site:
            write(site, self.MODULES)
            return run(script, site, **dict(self.JOB, **settings))

    def launch(self, *args, **settings):
        return self.accelerate(self.SCRIPT % (list(args) + ["train.py"],), **settings)

    def test_the_launcher_knows_the_tasks(self):
        job = "2 2 1 worker-0 20000 "
        self.assertEqual(self.launch(GPU="1"), job + " None")
        self.assertEqual(self.launch(), job + "cpu true")
        self.assertEqual(self.launch("--cpu", GPU="1"), job + "cpu None")
        self.assertEqual(self.launch("--main_process_port=1", "--machine_rank=0", GPU="1"), "2 2 0 worker-0 1  None")

    def test_several_processes_without_gpus_are_started_by_torchrun(self):
        several = "2 6 1 worker-0 20000 "
        self.assertEqual(self.launch(PET_NPROC_PER_NODE="3"), several + "torchrun true")
        self.assertEqual(self.launch("--cpu", PET_NPROC_PER_NODE="3"), several + "torchrun true")
        self.assertEqual(self.launch(PET_NPROC_PER_NODE="3", GPU="1"), several + " None")

    def test_what_is_configured_stays(self):
        job = "2 2 1 worker-0 20000 "
        self.assertEqual(self.launch("--config_file=c.yaml"), job + " true")
        self.assertEqual(self.launch(CONFIG=__file__), job + " true")
        self.assertEqual(self.launch("--multi_gpu"), job + "torchrun true")
        self.assertEqual(self.launch("--use_fsdp"), job + " true")

    def test_one_process_and_other_programs_are_left_alone(self):
        self.assertEqual(self.launch(GROUP_WORLD_SIZE="1", WORLD_SIZE="1"), "None None None None None  None")
        self.assertEqual(self.launch(HOLDFAST_ACCELERATE_CLUSTER="0"), "None None None None None  None")
        self.assertEqual(self.accelerate("from accelerate.commands.utils import CustomArgumentParser\nprint(CustomArgumentParser().parse_args([]))"), "Namespace()")

    def test_ranks_without_an_accelerator_are_a_group(self):
        script = "import accelerate, os; print(os.environ.get('ACCELERATE_USE_CPU'))"
        self.assertEqual(self.accelerate(script), "true")
        self.assertEqual(self.accelerate(script, GPU="1"), "None")
        self.assertEqual(self.accelerate(script, WORLD_SIZE="1"), "None")
        self.assertEqual(self.accelerate(script, ACCELERATE_USE_CPU="0"), "0")
        self.assertEqual(self.accelerate(script, HOLDFAST_ACCELERATE_CLUSTER="0"), "None")


class TorchFT(unittest.TestCase):
    MODULES = {
        "torch/__init__.py": "",
        "torch/distributed.py": "def is_initialized(): return False\n"
        "def TCPStore(*args, **kwargs): print('store', *args, kwargs['is_master'])\n",
        "torchft/__init__.py": "",
        "torchft/manager.py": "class Manager:\n    def __init__(self, pg, hostname='the-node'): print('manager at', hostname)\n",
        "torchft/checkpointing/__init__.py": "",
        "torchft/checkpointing/http_transport.py": "class HTTPTransport:\n    def address(self): return 'http://the-node:77/checkpoint/'\n",
    }
    SCRIPT = (
        "from torchft.manager import Manager\n"
        "from torchft.checkpointing.http_transport import HTTPTransport\n"
        "Manager('pg'); Manager('pg', hostname='chosen'); print(HTTPTransport().address())"
    )

    def torchft(self, **settings):
        with tempfile.TemporaryDirectory() as site:
            write(site, self.MODULES)
            with socket.socket() as s:
                s.bind(("", 0))
                port = str(s.getsockname()[1])
            group = {"HOLDFAST_TORCHFT_HOST": "127.77.0.2", "MASTER_ADDR": "127.77.0.2", "MASTER_PORT": port, "RANK": "0"}
            said = run(self.SCRIPT, site, HOLDFAST_FRAMEWORK="torchft", **dict(group, **settings))
            return said.replace(port, "PORT").split("\n")

    def test_a_group_has_a_store_and_tells_its_address(self):
        addresses = ["manager at 127.77.0.2", "manager at chosen", "http://127.77.0.2:77/checkpoint/"]
        self.assertEqual(self.torchft(), ["store 127.77.0.2 PORT True"] + addresses)
        # The others of its processes, and those under torchrun, only connect.
        self.assertEqual(self.torchft(RANK="1"), addresses)
        self.assertEqual(self.torchft(TORCHELASTIC_USE_AGENT_STORE="True"), addresses)

    def test_it_can_be_switched_off(self):
        self.assertEqual(self.torchft(HOLDFAST_TORCHFT_CLUSTER="0"), ["manager at the-node", "manager at chosen", "http://the-node:77/checkpoint/"])


class LightGBM(unittest.TestCase):
    BASIC = (
        "class Booster:\n"
        "    def __init__(self, params=None, train_set=None, model_file=None):\n"
        "        print(*('%s=%s' % i for i in sorted((params or {}).items())))\n"
    )
    JOB = {"LIGHTGBM_MACHINES": "127.0.0.1:21,127.77.0.2:22", "LIGHTGBM_NUM_MACHINES": "2", "LIGHTGBM_LOCAL_LISTEN_PORT": "21"}

    def booster(self, arguments, **settings):
        with tempfile.TemporaryDirectory() as site:
            os.mkdir(os.path.join(site, "lightgbm"))
            open(os.path.join(site, "lightgbm", "__init__.py"), "w").close()
            with open(os.path.join(site, "lightgbm", "basic.py"), "w") as f:
                f.write(self.BASIC)
            return run("from lightgbm.basic import Booster\nBooster(%s)" % arguments, site, HOLDFAST_FRAMEWORK="lightgbm", **dict(self.JOB, **settings))

    def test_a_distributed_learner_finds_the_machines(self):
        for given in ("{'tree_learner': 'data', 'num_machines': 7}, 1", "params={'tree_learner': 'data'}, train_set=1"):
            self.assertEqual(self.booster(given), "local_listen_port=21 machines=127.0.0.1:21,127.77.0.2:22 num_machines=2 tree_learner=data", given)

    def test_what_is_left_alone(self):
        for given, want in (
            ("{'tree_learner': 'serial'}, 1", "tree_learner=serial"),
            ("{'a': 1}, 1", "a=1"),
            ("None, 1", ""),
            ("{'tree': 'data'}", "tree=data"),  # it trains nothing
            ("{'tree': 'voting', 'workers': 'x:1'}, 1", "tree=voting workers=x:1"),
        ):
            self.assertEqual(self.booster(given), want, given)
        self.assertEqual(self.booster("{'tree': 'data'}, 1", HOLDFAST_LIGHTGBM_CLUSTER="0"), "tree=data")
        self.assertEqual(self.booster("{'tree': 'data'}, 1", LIGHTGBM_NUM_MACHINES="1"), "tree=data")


class Horovod(unittest.TestCase):
    # Stands for Horovod as far as it meets: each rank tells all others its address.
    BASICS = """
import http.client, os, time
def ask(method, path, body=None):
    c = http.client.HTTPConnection(os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"]))
    c.request(method, path, body)
    answer = c.getresponse()
    return answer.status, answer.read()
class HorovodBasics:
    def init(self, comm=None):
        rank, size = int(os.environ["HOROVOD_RANK"]), int(os.environ["HOROVOD_SIZE"])
        assert ask("PUT", "/global/%d" % rank, b"\\0 of %d" % rank)[0] == 200
        for r in range(size):
            while True:
                status, value = ask("GET", "/global/%d" % r)
                if status == 200:
                    break
                assert status == 404, status
            print(comm, value)
        deadline = time.time() + 3
        while time.time() < deadline and any(ask("PUT", "/%s/%d" % (comm, rank)) and ask("GET", "/%s/%d" % (comm, r))[0] != 200 for r in range(size)):
            pass
        assert ask("DELETE", "/global/%d" % rank)[0] == 200
        assert ask("GET", "/global/%d" % rank)[0] == 404
"""

    def test_the_first_rank_serves_and_all_wait(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = str(s.getsockname()[1])
        with tempfile.TemporaryDirectory() as site:
            package = os.path.join(site, "horovod", "common")
            os.makedirs(package)
            for directory in ("horovod", "horovod/common"):
                open(os.path.join(site, directory, "__init__.py"), "w").close()
            with open(os.path.join(package, "basics.py"), "w") as f:
                f.write(self.BASICS)
            script = (
                "import os, time\n"
                "from horovod.common.basics import HorovodBasics, ask\n"
                "time.sleep(0.5 * (2 - int(os.environ['HOROVOD_RANK'])))\n"  # the first is the last
                "HorovodBasics().init()\n"
                "time.sleep(0.2)\n"
                "HorovodBasics().init(comm='again')\n"
                "ask('PUT', '/done/' + os.environ['HOROVOD_RANK'])\n"
                "while os.environ['HOROVOD_RANK'] == '0' and any(ask('GET', '/done/%d' % r)[0] != 200 for r in range(3)):\n"
                "    pass\n"  # it serves the others
            )

            def rank(n):
                job = {"HOROVOD_RANK": str(n), "HOROVOD_SIZE": "3", "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1", "HOROVOD_GLOO_RENDEZVOUS_PORT": port}
                return run(script, site, HOLDFAST_FRAMEWORK="horovod", **job)

            with concurrent.futures.ThreadPoolExecutor() as ranks:
                for out in ranks.map(rank, range(3)):
                    want = ["%s %r" % (comm, b"\0 of %d" % n) for comm in ("None", "again") for n in range(3)]
                    self.assertEqual(out.split("\n"), want)


class TensorFlow(unittest.TestCase):
    def test_codes_of_parts(self):
        for message, codes in (
            ("\nABORTED: From /job:ps/task:0:\ngone\nCANCELLED: From /job:worker/task:1:\n", {"ABORTED", "CANCELLED"}),
            ("\nCANCELLED: RunManyGraphs\nABORTED: From /job:ps/task:0:\n", set()),
            ("a queue was closed", set()),
        ):
            self.assertEqual(tensorflow._codes_of_parts(message), codes, message)

    # Stands for TensorFlow where its sessions are made: a graph's operations are devices.
    SESSIONS = {
        "python/training/server_lib.py": """
from types import SimpleNamespace as N
class Server:
    def __init__(self, job, cluster, filters=(), tasks=2):
        self.target = "grpc://" + job
        self._server_def = N(job_name=job, task_index=0, cluster=N(job=[N(name=n, tasks=range(tasks)) for n in cluster]),
                             default_session_config=N(device_filters=list(filters)))
""",
        "python/client/session.py": """
class config_pb2:
    class ConfigProto:
        def __init__(self, filters=()):
            self.device_filters = list(filters)
        def CopyFrom(self, other):
            self.device_filters = list(other.device_filters)
class BaseSession:
    def __init__(self, target="", graph=None, config=None):
        self.filters = config.device_filters if config else []
""",
        "core/framework/graph_pb2.py": """
from types import SimpleNamespace as N
def GraphDef():
    return N(library=N(function=[]))
""",
    }
    SESSION = """
from types import SimpleNamespace as N
from tensorflow.python.training.server_lib import Server
from tensorflow.python.client.session import BaseSession, config_pb2
def filters(job="worker", cluster=("ps", "worker"), devices=("/job:ps/task:0", "/job:worker/task:0"), final=True, own=(), server=(), tasks=2):
    graph = N(finalized=final, get_operations=lambda: [N(device=d) for d in devices], _copy_functions_to_graph_def=lambda d, n: None)
    config = config_pb2.ConfigProto(own) if own else None
    return BaseSession(Server(job, cluster, server, tasks).target, graph, config).filters
"""

    def fake(self, site):
        for name, text in self.SESSIONS.items():
            file = os.path.join(site, "tensorflow", *name.split("/"))
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "w") as f:
                f.write(text)

    def filters(self, call, **settings):
        with tempfile.TemporaryDirectory() as site:
            self.fake(site)
            settings = dict({"HOLDFAST_DEVICE_FILTERS": "1"}, **settings)
            return run(self.SESSION + "print(*filters(%s))" % call, site, **settings)

    def test_a_worker_waits_for_no_other(self):
        self.assertEqual(self.filters(""), "/job:ps /job:worker/task:0")

    def test_sessions_that_are_left_as_they_are(self):
        self.assertEqual(self.filters("own=['/job:ps']"), "/job:ps")
        for call in (
            "server=['/job:ps']",
            "final=False",
            "devices=['/job:worker/task:1']",
            "cluster=('worker',)",
            "job='ps'",
        ):
            self.assertEqual(self.filters(call), "", call)
        self.assertEqual(self.filters("", HOLDFAST_DEVICE_FILTERS="0"), "")

    # Opens the FIFO as the agent does, makes a session, and ends; a child then shows what
    # was written, and lets it end.
    LINGER = """
import os, signal, sys
signal.alarm(30)
fifo = os.environ["HOLDFAST_LINGER"]
opened, parent = os.open(fifo, os.O_RDWR), os.getpid()
if os.fork() == 0:
    lines = os.fdopen(opened)
    for line in lines:
        print(line.strip().replace(str(parent), "stays"), flush=True)
        if line[0].isdigit():
            with open(fifo + "." + line.strip(), "w") as f:
                f.write("\\n")
        if line[0].isdigit() or line == "over\\n":
            os._exit(0)
"""

    def linger(self, script, **settings):
        """What a program says to the agent, and its exit code."""
        with tempfile.TemporaryDirectory() as site:
            self.fake(site)
            fifo = os.path.join(site, "fifo")
            os.mkfifo(fifo)
            environ = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "GRPC_"))}
            environ.update({"HOLDFAST_LINGER": fifo, "HOLDFAST_DEVICE_FILTERS": "1"}, PYTHONPATH=os.pathsep.join((SHIM, site)), PYTHONDONTWRITEBYTECODE="1")
            environ.update(settings)
            # What comes last in the interpreter is said last.
            last = "import atexit\natexit.register(lambda: os.write(opened, b'over\\n'))\n"
            p = subprocess.Popen([sys.executable, "-c", self.LINGER + last + self.SESSION + script], env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
            out, _ = p.communicate()
            return " ".join(out.split()), p.returncode

    def test_a_worker_stays_for_others(self):
        self.assertEqual(self.linger("filters()"), ("stays", 0))
        self.assertEqual(self.linger("filters(devices=['/job:worker/task:1'])"), ("peers stays", 0))
        self.assertEqual(self.linger("filters(own=['/job:worker/task:1'])"), ("stays", 0))
        self.assertEqual(self.linger("filters(final=False); filters(final=False); sys.exit()"), ("peers stays", 0))
        # That it failed shows in the exit code.
        self.assertEqual(self.linger("filters(); raise SystemExit(3)"), ("stays", 3))

    def test_who_does_not_stay(self):
        self.assertEqual(self.linger("filters(); raise ValueError()"), ("over", 1))
        self.assertEqual(self.linger("filters(); sys.exit(3)"), ("over", 3))
        self.assertEqual(self.linger("filters(job='ps')"), ("over", 0))
        self.assertEqual(self.linger("filters(tasks=1)"), ("over", 0))
        self.assertEqual(self.linger("pass"), ("over", 0))

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
