"""What an import changed in a warm interpreter: put away before the first fork, and
given back when the script imports something of it."""

import os
import sys

_ModuleSpec = type(sys.__spec__)

# Before anything else is imported here.
_MODULES = set(sys.modules)


class Refused(Exception):
    """The imports cannot be inherited by a fork; it says why."""


def set_environ(pairs):
    os.environ.clear()
    for name, value in pairs:
        os.environb[name] = value


class Hidden:
    """What the import of a module changed in this process.

    Also the finder that gives it back. sys.modules gets the modules of the
    standard library when the first of them is imported, and all else when the
    first other one is: then everything is as after an ordinary import.
    """

    def __init__(self, name, path, changes):
        import warnings

        self.name = name
        self.environ = list(os.environb.items())
        self.warnings = warnings
        self.specs = {}
        self.start = self._look()
        fds, signals, cwd = _descriptors(), signal_handlers(), os.getcwd()
        for k, v in changes.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v
        before = dict(os.environ)
        start_path, start_cache = list(sys.path), set(sys.path_importer_cache)
        sys.path[:] = path
        self.printed = self._import(name)
        self.after = self._look()
        if sys.path != path:
            raise Refused("importing %s changes sys.path" % name)
        if signal_handlers() != signals:
            raise Refused("importing %s changes what signals do" % name)
        if os.getcwd() != cwd:
            raise Refused("importing %s changes the working directory" % name)
        sys.path[:] = start_path
        self.modules = {n: m for n, m in sys.modules.items() if n not in _MODULES}
        self._look_for_the_tasks_own(path[:1])
        for p in set(sys.path_importer_cache) - start_cache:
            del sys.path_importer_cache[p]
        # Set: what the import left different; None: what it removed.
        self.changes = {k: v for k, v in os.environ.items() if before.get(k) != v}
        self.changes.update({k: None for k in before if k not in os.environ})
        set_environ(self.environ)
        _look_for_what_forks_cannot_inherit(name, fds)
        _drop_file_pages()

    def _look(self):
        class Look:
            meta_path = list(sys.meta_path)
            filters = list(self.warnings.filters)

        return Look

    def _import(self, name):
        """Returns what was printed, to descriptors 1 and 2, which are one in an
        attempt, and what is in sys.stdout's buffer still."""
        files = [_nameless_file(), _nameless_file()]
        real = [os.dup(n) for n in (1, 2)]
        trim = _Trim()
        sys.meta_path.insert(0, trim)
        try:
            os.dup2(files[0], 1)
            os.dup2(files[0], 2)
            try:
                __import__(name)
            finally:
                sys.stderr.flush()
                os.dup2(files[1], 1)
                sys.stdout.flush()
                for n in (1, 2):
                    os.dup2(real[n - 1], n)
        except BaseException as e:
            raise Refused("importing %s fails: %s: %s" % (name, type(e).__name__, e))
        finally:
            if trim in sys.meta_path:
                sys.meta_path.remove(trim)
            printed = [os.pread(f, os.fstat(f).st_size, 0) for f in files]
            for f in files + real:
                os.close(f)
        return printed

    def _look_for_the_tasks_own(self, places):
        """Refuses if the import ran files beside the script: they may change,
        and do whatever they like when they are imported."""
        places = {os.path.realpath(p) for p in places}
        for name, module in self.modules.items():
            origin = "." not in name and getattr(module, "__file__", None)
            if not origin:
                continue
            if getattr(module, "__path__", None) is not None:
                origin = os.path.dirname(origin)
            if os.path.realpath(os.path.dirname(origin)) in places:
                raise Refused("importing %s runs %s, which is the task's own" % (self.name, origin))

    def hide(self):
        for name in self.modules:
            del sys.modules[name]
        # The start-up file's own finder has done its work in the import.
        self.start.meta_path = [f for f in self.start.meta_path if f in self.after.meta_path]
        sys.meta_path[:] = [self] + self.start.meta_path
        self._set_filters(self.start.filters)

    def prepare(self):
        """In an attempt, before the script: draws new random numbers (random does
        so by itself at each fork), and notes the main thread's new number, which
        Python 3.11 forgets to do."""
        numbers = self.modules.get("numpy.random")
        if numbers is not None:
            numbers.seed()
        threading = self.modules.get("threading") or sys.modules.get("threading")
        if hasattr(getattr(threading, "_main_thread", None), "_set_native_id"):
            threading._main_thread._set_native_id()
        for finder in list(sys.path_importer_cache.values()):
            if hasattr(finder, "invalidate_caches"):
                finder.invalidate_caches()
        for name in (__name__, "_holdfast.warm"):  # an ordinary attempt has neither
            sys.modules.pop(name, None)

    # The finder and loader, importlib.abc.

    def find_spec(self, name, path=None, target=None):
        module = self.modules.get(name)
        if module is None:
            return None
        spec, real = _ModuleSpec(name, self), getattr(module, "__spec__", None)
        if isinstance(real, _ModuleSpec):  # what is asked of a module that is not imported
            spec.origin, spec.cached, spec.has_location = real.origin, real.cached, real.has_location
            spec.submodule_search_locations = real.submodule_search_locations
        return spec

    def create_module(self, spec):
        module = self.modules[spec.name]
        standard = getattr(sys, "stdlib_module_names", ())
        if spec.name.partition(".")[0] in standard:
            for n, m in self.modules.items():
                if n.partition(".")[0] in standard:
                    sys.modules.setdefault(n, m)
        else:
            self._reveal()
        self.specs[id(module)] = getattr(module, "__spec__", None)
        return module

    def exec_module(self, module):
        try:
            module.__spec__ = self.specs.pop(id(module))  # the import machinery has replaced it
        except AttributeError:
            pass  # then it could not replace it either

    def _set_filters(self, filters):
        self.warnings.filters[:] = filters
        with self.warnings.catch_warnings(module=self.warnings):
            pass  # both its ends tell the interpreter that the filters are others

    def _reveal(self):
        for n, m in self.modules.items():
            sys.modules.setdefault(n, m)
        found = [f for f in sys.meta_path if f is not self]
        if found == self.start.meta_path:
            sys.meta_path[:] = self.after.meta_path
        else:
            sys.meta_path[:] = found + [f for f in self.after.meta_path if f not in self.start.meta_path]
        filters = list(self.warnings.filters)
        if filters == self.start.filters:
            self._set_filters(self.after.filters)
        else:
            self._set_filters([f for f in self.after.filters if f not in filters] + filters)
        for k, v in self.changes.items():
            if v is None:
                os.environ.pop(k, None)
            else:
                os.environ[k] = v
        printed, buffered = self.printed
        self.printed = [b"", b""]
        while printed:
            printed = printed[os.write(2, printed):]
        if buffered and hasattr(sys.stdout, "buffer"):
            sys.stdout.buffer.write(buffered)


def signal_handlers():
    import signal

    return {s: signal.getsignal(s) for s in range(1, signal.NSIG)}


def _nameless_file():
    """A descriptor of an empty file that nobody else sees. os.memfd_create is in no Python
    before 3.8, nor in one that was built for a C library before 2.27, as conda's are."""
    path = os.path.join(os.environ.get("TMPDIR") or "/tmp", "printed-%d" % os.getpid())
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise Refused("what the import prints cannot be kept: %s" % e)
    os.unlink(path)
    return file


def _descriptors():
    return {f: os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + f)}


def _look_for_what_forks_cannot_inherit(name, fds):
    for f, target in _descriptors().items():
        if f not in fds:
            raise Refused("importing %s leaves %s open" % (name, target))
    with open("/proc/self/maps") as f:
        for line in f:
            file = line.split(None, 5)[5:]
            if file and file[0].startswith("/dev/") and not file[0].startswith(("/dev/zero", "/dev/shm/")):
                raise Refused("importing %s opens a device: %s" % (name, file[0].strip()))
    # Some libraries end their threads at a fork and start them again when
    # needed (OpenBLAS does): those that are left after one count.
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    left = len(os.listdir("/proc/self/task")) - 1
    if left:
        raise Refused("importing %s starts %d threads that a fork would lose" % (name, left))
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return
    raise Refused("importing %s starts processes" % name)


class _Trim:
    """A finder that finds nothing: now and then during the import it lets the
    pages of libraries go."""

    def __init__(self):
        import time

        self._now, self._last = time.monotonic, time.monotonic()

    def find_spec(self, name, path=None, target=None):
        if self._now() - self._last > 0.5:
            _drop_file_pages()
            self._last = self._now()
        return None


def _drop_file_pages():
    """Gives back the memory that only shows what is in files anyway, code for
    the most part: a container pays for it, and it comes back when it is used."""
    import ctypes
    import re

    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    header = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+)")
    mapping = None
    with open("/proc/self/smaps") as f:
        for line in f:
            m = header.match(line)
            if m:
                mapping = m
            elif line.startswith("Anonymous:"):
                start, end, mode, inode = mapping.groups()
                if line.split()[1] == "0" and inode != "0" and "w" not in mode and mode[3] == "p":
                    first, last = int(start, 16), int(end, 16)
                    madvise(first, last - first, 4)  # MADV_DONTNEED
