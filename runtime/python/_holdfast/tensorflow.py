"""What Holdfast does in programs that import TensorFlow, by these settings. Each is off
where it is not set or 0.

HOLDFAST_RECOVERY_WAIT_SECS=1  A worker that finds the model not ready looks
    again after so many seconds instead of SessionManager's 30.
HOLDFAST_NAME_LOST_PEERS=1  A step that failed since a peer was lost fails with
    that, and not with the cancellation of its other parts.
HOLDFAST_DEVICE_FILTERS=1  A worker's session needs the parameter servers and the
    worker itself, and does not wait for other workers that have ended, or have not
    begun.
HOLDFAST_LINGER=FILE  A worker says in this file, a FIFO, that a session of its needs the
    other workers, and stays at its end, which it says there, too, until it is let end.
HOLDFAST_MODEL_KEPT=1  A session goes on from what the parameter servers hold, if
    they hold all of the model, and does not put the last checkpoint in its place.
    Once a parameter server has lost its part, this process restores as ever.
HOLDFAST_COORDINATOR_EXIT=1  A program with a ClusterCoordinator that ends does not
    wait for a worker that is lost.
HOLDFAST_FAIL_FAST=1  Calls to a server that is not there fail at once instead of
    waiting for it (GRPC_FAIL_FAST), with a TensorFlow that knows the word.
HOLDFAST_TF1=1  `import tensorflow` gives TensorFlow 2's compat.v1, with
    version 2's behaviour switched off, so that a script written for
    TensorFlow 1 runs unedited.
"""

import os
import sys


def prepare():
    """Called when TensorFlow is about to be executed."""
    if os.environ.get("HOLDFAST_FAIL_FAST") == "1":
        _fail_fast()


def hooks():
    """Called when TensorFlow is looked for: pairs of a module's name and what is to be
    called with the module when it has been executed."""
    manager = "tensorflow.python.training.session_manager"
    if os.environ.get("HOLDFAST_FRAMEWORK") == "tensorflow":
        yield manager, _keep_model
    wait = os.environ.get("HOLDFAST_RECOVERY_WAIT_SECS", "0")
    try:
        seconds = float(wait or "0")
    except ValueError:
        sys.stderr.write("HOLDFAST_RECOVERY_WAIT_SECS is %r, which is no number of seconds; it is ignored\n" % wait)
        seconds = 0
    if seconds > 0:
        yield manager, _shorten_waits(seconds)
    if os.environ.get("HOLDFAST_LINGER", "0") != "0":
        linger = _Linger()
        yield "tensorflow.python.training.server_lib", _after_servers(linger.note_server)
        yield "tensorflow.python.client.session", linger.note_sessions
    if os.environ.get("HOLDFAST_DEVICE_FILTERS") == "1":  # what it sets, those above see
        filters = _DeviceFilters()
        yield "tensorflow.python.training.server_lib", _after_servers(filters.note_server)
        yield "tensorflow.python.client.session", filters.filter_sessions
    if os.environ.get("HOLDFAST_COORDINATOR_EXIT") == "1":
        yield "tensorflow.python.distribute.coordinator.cluster_coordinator", _let_coordinators_exit
    if os.environ.get("HOLDFAST_NAME_LOST_PEERS") == "1":
        yield "tensorflow.python.client.session", _name_lost_peers
    if os.environ.get("HOLDFAST_TF1") == "1":
        yield "tensorflow", _become_tf1


def _replace(owner, name, method):
    """Puts a method in the place of the one that it calls."""
    original = getattr(owner, name)
    method.__doc__ = original.__doc__
    method.__wrapped__ = original
    setattr(owner, name, method)


def _after_servers(note):
    """Has note called with each server that the program makes, and its definition."""

    def action(module):
        server = getattr(module, "Server", None)
        if server is None:
            return
        original = server.__init__

        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            if hasattr(self, "_server_def"):
                note(self, self._server_def)

        _replace(server, "__init__", __init__)

    return action


def _has_filters(definition, config):
    """Reports whether a session with a config, on a server, has device filters."""
    return bool(getattr(config, "device_filters", None) or definition.default_session_config.device_filters)


def _shorten_waits(seconds):
    def action(module):
        manager = getattr(module, "SessionManager", None)
        if manager is None:
            return
        original = manager.__init__

        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            # 30 is the default. Whoever chose another number meant it.
            if getattr(self, "_recovery_wait_secs", None) == 30:
                self._recovery_wait_secs = seconds

        _replace(manager, "__init__", __init__)

    return action


def _keep_model(module):
    """Has a chief that comes back leave the parameter servers what they hold.

    SessionManager.prepare_session, which a chief begins with, restores the last
    checkpoint whatever the parameter servers hold (_restore_checkpoint in
    tensorflow/python/training/session_manager.py). So all would be lost that the
    other workers have trained since, who need no chief for that, while nobody
    saved. Whether the model is there is asked as those do who only join
    (wait_for_session). A connection that breaks, as when a lost host comes back, ends
    a session, and the next one of this process is asked the same.
    """
    manager = getattr(module, "SessionManager", None)
    original = getattr(manager, "_restore_checkpoint", None)
    if original is None:
        return
    restored = [False]  # begun, and it may have been broken off halfway

    def all_there(self, session):
        # Supervisor has the second alone, which asks for the local variables too.
        for op, look in ("_ready_for_local_init_op", "_model_ready_for_local_init"), ("_ready_op", "_model_ready"):
            if getattr(self, op, None) is not None and hasattr(self, look):
                return getattr(self, look)(session)[0]
        return False

    def _restore_checkpoint(self, master, saver=None, checkpoint_dir=None, *args, **kwargs):
        kept = not restored[0] and os.environ.get("HOLDFAST_MODEL_KEPT") == "1"
        named = bool(args) or kwargs.get("checkpoint_filename_with_path")
        if kept and saver and checkpoint_dir and not named:
            session, _ = original(self, master, config=kwargs.get("config"))
            if all_there(self, session):
                state = module.checkpoint_management.get_checkpoint_state(checkpoint_dir)
                if state:  # as after a restore: it removes the oldest of these in time
                    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
                sys.stderr.write("holdfast: the parameter servers have kept the model; no checkpoint is restored\n")
                return session, True
            session.close()
        restored[0] = True
        return original(self, master, saver, checkpoint_dir, *args, **kwargs)

    _replace(manager, "_restore_checkpoint", _restore_checkpoint)


def _name_lost_peers(module):
    """Has a session raise what a step's first failure was.

    When a part of a step fails, the master cancels the parts on other tasks and
    puts what all of them say into one error. Its code is that of one of them, by
    an order that has nothing to do with what came first
    (StatusGroup::as_concatenated_status, tsl/platform/status.cc: in TensorFlow
    2.21 the last in the alphabet, so CANCELLED comes before ABORTED). So a step
    that a restarted parameter server refuses, while another part of it waits for
    a tensor, fails with CANCELLED. MonitoredSession makes a new session after
    ABORTED and UNAVAILABLE only (_PREEMPTION_ERRORS); the program ends.
    """
    session = getattr(module, "BaseSession", None)
    errors = getattr(module, "errors", None)
    original = getattr(session, "_do_call", None)
    if original is None or not hasattr(errors, "CancelledError"):
        return
    lost = {"ABORTED": errors.AbortedError, "UNAVAILABLE": errors.UnavailableError}

    def _do_call(self, fn, *args):
        try:
            return original(self, fn, *args)
        except errors.CancelledError as e:
            codes = _codes_of_parts(e.message)
            # Of any other code is a fault of the step itself.
            if not codes - {"CANCELLED"} or codes - {"CANCELLED"} - set(lost):
                raise
            code = max(codes & set(lost))
            raise lost[code](e.node_def, e.op, e.message) from None

    _replace(session, "_do_call", _do_call)


def _codes_of_parts(message):
    """The codes in an error that the master puts together from those of a step's
    parts, each with the task that it is from; none if it is another error, or if
    the caller itself has cancelled the step
    (tensorflow/core/distributed_runtime/master_session.cc, RunManyGraphs)."""
    import re

    if "\nCANCELLED: RunManyGraphs\n" in message:
        return set()
    return set(re.findall(r"^([A-Z_]+): From /job:", message, re.MULTILINE))


def _let_coordinators_exit(module):
    """Has a program end whose coordinator is about to take a lost worker in again.

    ClusterCoordinator.__del__ stops threads, and waits for a lock that one of them
    holds for as long as it waits for the worker (_preemption_handler in
    tensorflow/python/distribute/coordinator/cluster_coordinator.py). When the
    interpreter ends, that thread has ended without giving the lock back, and the
    program would never end, also if the worker comes. The threads are daemons, which
    nobody has to stop then.
    """
    coordinator = getattr(module, "ClusterCoordinator", None)
    original = getattr(coordinator, "__del__", None)
    if original is None:
        return

    def __del__(self):
        if not sys.is_finalizing():
            original(self)

    _replace(coordinator, "__del__", __del__)


class _DeviceFilters:
    """Has the session of a worker see the parameter servers and its own task only.

    A session without device filters is created on every task of the cluster, and
    waits for those that do not answer for as long as they do not
    (MasterSession::CreateWorkerSessions and Master::CreateSession in
    tensorflow/core/distributed_runtime): a worker that comes back when others have
    ended would wait for ever. The filters are those that Estimator sets
    (_get_default_session_config_distributed in tensorflow_estimator's
    run_config.py).

    A session is left as it is where that could change what it computes: the script
    has set filters, or the graph, which has to be final, has operations on another
    task of the workers.
    """

    def __init__(self):
        self._servers = {}  # those of this process: the definition of each, by its target

    def note_server(self, server, definition):
        self._servers[server.target] = definition

    def filter_sessions(self, module):
        session = getattr(module, "BaseSession", None)
        if session is None or not hasattr(module, "config_pb2"):
            return
        original, filters = session.__init__, self._filters

        def __init__(self, target="", graph=None, config=None):
            allowed = filters(target, module.ops.get_default_graph() if graph is None else graph, config)
            if allowed:
                given, config = config, module.config_pb2.ConfigProto()
                if given is not None:
                    config.CopyFrom(given)
                config.device_filters.extend(allowed)
            original(self, target, graph, config)

        _replace(session, "__init__", __init__)

    def _filters(self, target, graph, config):
        """What a session may see; nothing if it is to be left as it is."""
        try:
            server = self._servers.get(target)
            if server is None or os.environ.get("HOLDFAST_DEVICE_FILTERS") != "1":
                return []
            if _has_filters(server, config):
                return []
            job, task = server.job_name, server.task_index
            if job == "ps" or not any(j.name == "ps" for j in server.cluster.job):
                return []
            if not graph.finalized or any(self._elsewhere(d, job, task) for d in self._devices(graph)):
                return []
            return ["/job:ps", "/job:%s/task:%d" % (job, task)]
        except (AttributeError, TypeError, ValueError):
            return []  # of another version of TensorFlow, or of what is no graph

    @staticmethod
    def _devices(graph):
        """The devices that operations of a graph, and of its functions, ask for."""
        from tensorflow.core.framework import graph_pb2

        for op in graph.get_operations():
            yield op.device
        functions = graph_pb2.GraphDef()
        graph._copy_functions_to_graph_def(functions, 0)
        for function in functions.library.function:
            for node in function.node_def:
                yield node.device

    @staticmethod
    def _elsewhere(device, job, task):
        """Reports whether a device is, or may be, of a task that the filters leave out."""
        import re

        jobs = re.findall(r"/job:([^/]+)", device)
        tasks = re.findall(r"/task:(\d+)", device)
        if not jobs:
            return bool(tasks)
        return jobs[-1] != "ps" and (jobs[-1] != job or tasks[-1:] != [str(task)])


class _Linger:
    """Has a worker's process stay at its end for the sessions of others.

    A session without device filters is created on every task of the cluster, and
    waits for those that are not there (see _DeviceFilters). So a process says when it
    makes such a session, and stays at its end until the agent lets it end, which is at
    once where no process of the job has said so. Its exit code is not known before.
    One that fails does not stay.
    """

    def __init__(self):
        self._servers = {}  # of a worker, by their targets: they must not be destroyed before
        self._process = None
        self._told = False  # that a session needs the other workers
        self._status = None  # given to sys.exit

    def note_server(self, server, definition):
        try:
            others = sum(len(j.tasks) for j in definition.cluster.job if j.name != "ps") - 1
            if definition.job_name == "ps" or others < 1:
                return
        except (AttributeError, TypeError):
            return  # of another version of TensorFlow
        if self._process is None:
            import atexit

            self._process = os.getpid()
            self._note_exit()
            atexit.register(self._stay)
        self._servers[server.target] = server

    def _note_exit(self):
        original = sys.exit

        def exit(*args):
            self._status = args[0] if args else None
            original(*args)

        exit.__doc__ = original.__doc__
        sys.exit = exit

    def note_sessions(self, module):
        session = getattr(module, "BaseSession", None)
        if session is None:
            return
        original = session.__init__

        def __init__(own, target="", graph=None, config=None):
            server = self._servers.get(target)
            if server is not None and not self._told and not _has_filters(server._server_def, config):
                self._told = self._tell(b"peers\n")
            original(own, target, graph, config)

        _replace(session, "__init__", __init__)

    def _failed(self):
        """Reports whether the program ends by an exception, or has given sys.exit
        something that is no success. Other ways to fail show in the exit code."""
        return bool(self._status) or any(getattr(sys, n, None) is not None for n in ("last_exc", "last_type"))

    @staticmethod
    def _tell(line):
        """Reports whether the agent will read the line."""
        try:
            fifo = os.open(os.environ.get("HOLDFAST_LINGER", "0"), os.O_WRONLY | os.O_NONBLOCK)
            try:
                return os.write(fifo, line) == len(line)
            finally:
                os.close(fifo)
        except OSError:
            return False

    def _stay(self):
        if self._failed() or os.getpid() != self._process:
            return
        import select

        own = "%s.%d" % (os.environ.get("HOLDFAST_LINGER", "0"), self._process)
        try:
            os.mkfifo(own, 0o600)
            end = os.open(own, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return  # nobody could let it end
        for stream in sys.stdout, sys.stderr:
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass  # closed, or none
        if self._tell(b"%d\n" % self._process):
            select.select([end], [], [])


# What distributions of TensorFlow are called.
_DISTRIBUTIONS = r"(?:tensorflow|intel[-_]tensorflow|tf[-_]nightly)(?:[-_](?:cpu|gpu|rocm|macos|intel|aarch64|cpu[-_]aws))?"


def _tensorflow_version():
    """The version of TensorFlow that this interpreter has, as (2, 21), by the name of
    its metadata's directory: nothing is imported. None if there is none, or it is
    not known."""
    import re

    named = re.compile(_DISTRIBUTIONS + r"-(\d+)\.(\d+)\..*(?:dist|egg)-info$", re.IGNORECASE)
    for path in sys.path:
        try:
            names = os.listdir(path or os.curdir)
        except OSError:
            continue
        for name in names:
            found = named.match(name)
            if found:
                return int(found.group(1)), int(found.group(2))
    return None


def _fail_fast():
    """A coordinator's calls to a parameter server that is not there wait for it by
    default ("Parameter server training", TensorFlow's tutorial). Until version 2.3 the
    variable is a boolean, and TensorFlow aborts at any other word
    (tensorflow/core/distributed_runtime/rpc/grpc_remote_worker.cc)."""
    if "GRPC_FAIL_FAST" not in os.environ:
        version = _tensorflow_version()
        if version is not None and version >= (2, 4):
            os.environ["GRPC_FAIL_FAST"] = "use_caller"


# Libraries that are written for TensorFlow 2 and import it by the same name.
_LIBRARIES = ("keras", "tf_keras", "tensorflow", "tensorboard")


def _become_tf1(real):
    """Puts a module in the place of TensorFlow's that answers like version 1."""
    import types

    if str(getattr(real, "__version__", "1")).startswith("1."):
        return  # it is TensorFlow 1
    import tensorflow.compat.v1 as v1

    v1.disable_v2_behavior()

    module = types.ModuleType("tensorflow", real.__doc__)
    for name in ("__file__", "__path__", "__spec__", "__loader__", "__package__", "__version__"):
        if hasattr(real, name):
            setattr(module, name, getattr(real, name))

    # The whole of compat.v1 is in the real one's; v1 has an abridged one below it.
    module.compat = real.compat
    installed = os.path.dirname(os.path.dirname(os.path.abspath(real.__file__))) + os.sep

    def __getattr__(name):
        caller = sys._getframe(1).f_globals
        if str(caller.get("__name__")).startswith(_LIBRARIES) and str(caller.get("__file__")).startswith(installed):
            return getattr(real, name)
        for version in (v1, real):
            try:
                return getattr(version, name)
            except AttributeError:
                pass
        raise AttributeError("module 'tensorflow' has no attribute %r" % name)

    def __dir__():
        return sorted(set(dir(v1)) | set(dir(real)))

    module.__getattr__ = __getattr__
    module.__dir__ = __dir__
    _add_contrib(module, v1)
    sys.modules["tensorflow"] = module


def _add_contrib(module, v1):
    """tf.contrib ended with version 1; what is kept has the same meaning in v1."""
    import types

    def gone(prefix):
        def __getattr__(name):
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(
                "%s.%s is not in TensorFlow 2, so a script that uses it needs TensorFlow 1 itself" % (prefix, name)
            )

        return __getattr__

    contrib = types.ModuleType("tensorflow.contrib")
    contrib.__path__ = []
    contrib.__getattr__ = gone("tf.contrib")
    framework = types.ModuleType("tensorflow.contrib.framework")
    framework.__getattr__ = gone("tf.contrib.framework")
    for name in ("get_or_create_global_step", "get_global_step", "create_global_step"):
        if hasattr(v1.train, name):
            setattr(framework, name, getattr(v1.train, name))
    contrib.framework = framework
    module.contrib = contrib
    sys.modules["tensorflow.contrib"] = contrib
    sys.modules["tensorflow.contrib.framework"] = framework
