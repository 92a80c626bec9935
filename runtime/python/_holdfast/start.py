"""Runs in every Python program of a task as it starts: notes what to do when a
framework is imported, and hands over to the sitecustomize that Holdfast's hides, if
there is one.

HOLDFAST_STACKS=0  SIGQUIT is left as it is; otherwise it has the program write
    where its threads stand.
HOLDFAST_WARM=tensorflow  The agent may keep a warm interpreter that has
    imported this module. The environment and sys.path with which the script
    imports it are written down, and a warm interpreter waits here: see warm.py.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))

# The frameworks that have a module here, and the settings that ask for it; so does
# HOLDFAST_FRAMEWORK.
FRAMEWORKS = {
    "tensorflow": (
        "HOLDFAST_RECOVERY_WAIT_SECS",
        "HOLDFAST_NAME_LOST_PEERS",
        "HOLDFAST_DEVICE_FILTERS",
        "HOLDFAST_LINGER",
        "HOLDFAST_COORDINATOR_EXIT",
        "HOLDFAST_FAIL_FAST",
        "HOLDFAST_TF1",
    ),
    "jax": ("HOLDFAST_JAX_CLUSTER",),
    "xgboost": ("HOLDFAST_XGBOOST_CLUSTER",),
    "lightgbm": ("HOLDFAST_LIGHTGBM_CLUSTER",),
    "torchft": ("HOLDFAST_TORCHFT_CLUSTER",),
    "horovod": ("HOLDFAST_HOROVOD_RENDEZVOUS",),
    "deepspeed": ("HOLDFAST_DEEPSPEED_CLUSTER",),
    "accelerate": ("HOLDFAST_ACCELERATE_CLUSTER",),
}


def _after_import(actions, before, frameworks):
    """Calls each of actions[name] with the module of that name when it has been
    executed, and before[name]() when it is looked for. When a framework is looked for,
    the actions of its module here are added."""

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in before:
                before.pop(name)()
            if name in frameworks:
                frameworks.remove(name)
                for module, action in __import__(__package__ + "." + name, fromlist=["hooks"]).hooks():
                    actions.setdefault(module, []).append(action)
            due = actions.get(name)
            if due is None:
                return None
            spec = self._others(name, path, target)
            execute = getattr(getattr(spec, "loader", None), "exec_module", None)
            if execute is None:
                return spec

            def exec_module(module):
                execute(module)
                actions.pop(name, None)
                if not actions and not frameworks and self in sys.meta_path:
                    sys.meta_path.remove(self)
                for action in due:
                    action(module)

            try:
                # The loader keeps its type: inspect and pkgutil ask for it.
                spec.loader.exec_module = exec_module
            except AttributeError:
                pass
            return spec

        def _others(self, name, path, target):
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                if finder is self or find is None:
                    continue
                spec = find(name, path, target)
                if spec is not None:
                    return spec
            return None

    sys.meta_path.insert(0, Finder())


class _Note:
    """Says, in imported-PID.json beside this file, with what environment and
    path the main program imports a module, once it has."""

    def __init__(self, name):
        self._name = name
        self._environ = dict(os.environ)
        self._modules = set(sys.modules)
        self._import = __import__
        self._note = None

    def before(self):
        now = dict(os.environ)
        environ = {k: v for k, v in now.items() if self._environ.get(k) != v}
        environ.update({k: None for k in self._environ if k not in now})
        self._note = {"environ": environ, "path": list(sys.path), "refused": self._refused()}

    def _refused(self):
        import builtins

        for patcher in ("gevent", "eventlet"):
            if patcher in sys.modules:
                return "the script imports %s before it imports %s" % (patcher, self._name)
        if builtins.__import__ is not self._import:
            return "the script has an __import__ of its own"
        for name, module in list(sys.modules.items()):
            # Packages make themselves some inner ones, typing.io for one, and what
            # Cython has compiled makes cython_runtime and _cython_VERSION.
            if "." not in name and not name.startswith(("cython_runtime", "_cython_")) and name not in self._modules and getattr(module, "__spec__", None) is None:
                return "the script puts a module %s of its own making in place before it imports %s" % (name, self._name)
        return ""

    def after(self, module):
        if self._note is None:
            return
        import json

        file = os.path.join(os.path.dirname(_HERE), "imported-%d.json" % os.getpid())
        try:
            with open(os.open(file + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
                json.dump(self._note, f)
            os.rename(file + ".part", file)
        except OSError:
            pass  # then attempts start the ordinary way


def _run_hidden():
    """Runs the sitecustomize that Holdfast's hides; it then is the module of that name."""
    from _frozen_importlib import module_from_spec  # importlib.util imports much
    from _frozen_importlib_external import PathFinder

    here = os.path.realpath(os.path.dirname(_HERE))
    path = [p for p in sys.path if os.path.realpath(p or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _say_where():
    """Has SIGQUIT write where all threads stand, as it does with Java. It comes before
    the task is stopped because it makes no steps."""
    import _signal

    try:
        import faulthandler

        if _signal.getsignal(_signal.SIGQUIT) == _signal.SIG_DFL:
            faulthandler.register(_signal.SIGQUIT, file=2, all_threads=True)
    except (ImportError, AttributeError, OSError, RuntimeError, ValueError):
        pass  # then it is stopped all the same


def _install():
    actions, before, frameworks = {}, {}, set()
    if os.environ.get("HOLDFAST_STACKS") != "0":
        _say_where()
    for name, settings in FRAMEWORKS.items():
        if os.environ.get("HOLDFAST_FRAMEWORK") == name or any(os.environ.get(s) for s in settings):
            frameworks.add(name)
    warm = os.environ.get("HOLDFAST_WARM")
    # An attempt leads a session; what it starts in turn does not.
    if warm and os.getsid(0) == os.getpid() and "HOLDFAST_WARM_SOCKET" not in os.environ:
        note = _Note(warm)
        before[warm] = note.before
        actions[warm] = [note.after]
    if actions or frameworks:
        _after_import(actions, before, frameworks)


def _wait_warm():
    """In the warm interpreter, waits; returns in its children and elsewhere."""
    socket = os.environ.pop("HOLDFAST_WARM_SOCKET", None)
    if socket is None:
        return
    try:
        from _holdfast.warm import serve
    except BaseException as e:
        sys.stderr.write("the warm interpreter: %s\n" % e)
        os._exit(70)  # the script must never run in this process
    serve(int(socket), os.environ["HOLDFAST_WARM"])


def run():
    _install()
    _run_hidden()
    _wait_warm()
