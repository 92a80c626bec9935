"""Runs in every Python program of a task as it starts: notes what to do when a
framework is imported, and hands over to the sitecustomize that Holdfast's hides, if
there is one. A Python before 3.7 only hands over: TensorFlow has needed 3.7 since 2.4.
This file alone has to be readable for these.

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
    """Calls each of before[name] when the module of that name is about to be executed, and
    each of actions[name] with the module when it has been. When a framework is looked for,
    those of its module here are added: prepare, if it has that, and what hooks gives. That
    none of them knows a framework's version does not keep a program from going on."""

    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name in frameworks:
                frameworks.discard(name)
                _try(name, self._add, name)
            if name not in actions and name not in before:
                return None
            spec = self._others(name, path, target)
            execute = getattr(getattr(spec, "loader", None), "exec_module", None)
            if execute is None:
                return spec

            def exec_module(module):
                if getattr(getattr(module, "__spec__", None), "name", name) != name:
                    return execute(module)  # a loader may be that of several modules: zipimport's is
                for action in before.get(name, ()):
                    _try(name, action)
                execute(module)
                before.pop(name, None)
                due = actions.pop(name, ())
                if not actions and not before and not frameworks and self in sys.meta_path:
                    sys.meta_path.remove(self)
                for action in due:
                    _try(name, action, module)

            try:
                # The loader keeps its type: inspect and pkgutil ask for it.
                spec.loader.exec_module = exec_module
            except AttributeError:
                pass
            return spec

        def _add(self, framework):
            own = __import__(__package__ + "." + framework, fromlist=["hooks"])
            if hasattr(own, "prepare"):
                before.setdefault(framework, []).append(own.prepare)
            for module, action in own.hooks():
                actions.setdefault(module, []).append(action)

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


def _spec(module):
    """The specification of what may also be no module, and raise whatever it likes."""
    try:
        return getattr(module, "__spec__", None)
    except Exception:
        return None


def _try(name, do, *args):
    """Returns what do returns. What it raises where a framework's version, or a variable of
    the job, is not as it takes it to be, is told, and None is returned."""
    try:
        return do(*args)
    except (AttributeError, ImportError, LookupError, TypeError, ValueError) as e:
        if sys.stderr is not None:
            sys.stderr.write("holdfast: what is done for the job when %s is imported has failed, and the program goes on without: %s: %s\n" % (name, type(e).__name__, e))


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
            if "." not in name and not name.startswith(("cython_runtime", "_cython_")) and name not in self._modules and _spec(module) is None:
                return "the script puts a module %s of its own making in place before it imports %s" % (name, self._name)
        return ""

    def after(self, module):
        import json

        try:
            note = json.dumps(self._note, ensure_ascii=False).encode("utf-8")
        except (TypeError, UnicodeEncodeError):
            note = b'{"refused": "the script puts into sys.path or the environment what is no text"}'
        file = os.path.join(os.path.dirname(_HERE), "imported-%d.json" % os.getpid())
        try:
            with open(os.open(file + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
                f.write(note)
            os.rename(file + ".part", file)
        except OSError:
            pass  # then attempts start the ordinary way


# Where the sitecustomizes are that were begun: this one's directory first.
_begun = [os.path.realpath(os.path.dirname(_HERE))]


def _run_hidden():
    """Runs the first sitecustomize that was not begun; it then is the module of that name."""
    path = [p for p in sys.path if os.path.realpath(p or os.curdir) not in _begun]
    if sys.version_info < (3, 5):
        import imp

        try:
            found = imp.find_module("sitecustomize", path)
        except ImportError:
            return
        _begun.append(os.path.realpath(os.path.dirname(found[1])))
        imp.load_module("sitecustomize", *found)
        return
    from _frozen_importlib import module_from_spec  # importlib.util imports much
    from _frozen_importlib_external import PathFinder

    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or not spec.has_location:
        return
    place = os.path.dirname(spec.origin)
    _begun.append(os.path.realpath(os.path.dirname(place) if spec.submodule_search_locations else place))
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
        before[warm] = [note.before]
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


_ran = False


def run():
    """Does all that is to be done as Python starts. The sitecustomize that is run by this
    one may run this one in turn, in place of the next: then that is all that is done."""
    global _ran
    if _ran:
        return _run_hidden()
    _ran = True
    try:
        if sys.version_info >= (3, 7):
            _install()
        _run_hidden()
    finally:
        _wait_warm()  # whatever failed, the script must never run there
