"""The warm interpreter: a process that has imported what the task's script
imports, and forks for each attempt.

It is started with the very command of an attempt and stops here, before the
interpreter looks at the script, in the start-up file. A forked child returns
from here, and the interpreter goes on as it would have: it finds the script,
makes __main__, runs it, and ends. So arguments, __file__, tracebacks, exit
codes and all that belongs to the end are the interpreter's own doing.

What the import changed in this process is put away before the first fork and
comes out again when the script imports something of it: modules, environment
variables, finders, warning filters, and what was printed meanwhile.
"""

import os
import sys

_ModuleSpec = type(sys.__spec__)

# Before anything else is imported here.
_MODULES = set(sys.modules)


class Refused(Exception):
    """The imports cannot be inherited by a fork; it says why."""


def serve(fd, name):
    """Speaks to the agent on the socket fd. Returns in attempts only.

    Messages are a length (four bytes, big-endian) and a JSON object. The agent
    says what to import with: {"path": sys.path, "environ": {changed: value or
    null}}. The answer is {"ready": true, "common": how many words of the command
    line all attempts must have in common with this process} or {"refused":
    "why"}. After that, each {"argv": [...], "environ": [[name, value]], "dir":
    ...}, which carries the descriptors of the child's output and of its gate, is
    answered by {"pid": ...}. The child waits until a byte comes through the
    gate; at its end it goes. With "stay" and no gate it is this process, and no
    child, that becomes the attempt: the agent may ask for that at any time, and
    gets no answer then.
    """
    refused, kernel = "", None
    try:
        ignored = _ignored()
        agent = _Agent(fd)
        request, _ = agent.receive()
        try:
            kernel = _Kernel()
            hidden = _Hidden(name, request["path"], request["environ"])
            hidden.hide()
            agent.send({"ready": True, "common": kernel.common})
        except Refused as e:
            refused = str(e)
            agent.send({"refused": refused})
        while True:
            request, fds = agent.receive(2)
            if request.get("stay"):
                break
            pid = _fork()
            if pid == 0:
                break
            for f in fds:
                os.close(f)
            agent.send({"pid": pid})
    except EOFError:
        os._exit(0)  # the agent wants no more
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(70)  # the script must never run in this process
    try:
        _join(request, fds, agent, kernel)
        if not refused and kernel.can_start(request["argv"]):
            _become(request, kernel)
            hidden.prepare()
            return
        _start_over(request, kernel, ignored)
    except BaseException:
        import traceback

        traceback.print_exc()
        os._exit(126)


class _Agent:
    """The agent's end of a socket. It imports what it needs when it is made:
    after hide() that would bring to light what is hidden."""

    def __init__(self, fd):
        import array
        import json
        import socket

        self._json, self._array = json, array.array
        self._socket = socket.socket(fileno=fd)
        self.close = self._socket.close

    def receive(self, most=0):
        """A message and at most so many descriptors."""
        head, fds = b"", self._array("i")
        while len(head) < 4:
            data, extra, _, _ = self._socket.recvmsg(4 - len(head), most * 2 * fds.itemsize + 64)
            if not data:
                raise EOFError
            head += data
            for _, _, content in extra:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        size, body = int.from_bytes(head, "big"), b""
        while len(body) < size:
            data = self._socket.recv(size - len(body))
            if not data:
                raise EOFError
            body += data
        return self._json.loads(body), list(fds)

    def send(self, message):
        body = self._json.dumps(message).encode()
        self._socket.sendall(len(body).to_bytes(4, "big") + body)


class _Kernel:
    """What is asked of the kernel by ctypes, which is imported when this is made."""

    def __init__(self):
        try:
            import ctypes
        except Exception as e:
            raise Refused("this Python has no ctypes: %s" % e)
        import struct

        self._ctypes, self._pack = ctypes, struct.pack
        self._libc = libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = libc.sbrk.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        libc.sbrk.argtypes = [ctypes.c_ssize_t]
        libc.prctl.argtypes = [ctypes.c_int] + 4 * [ctypes.c_ulong]
        libc.getauxval.restype, libc.getauxval.argtypes = ctypes.c_char_p, [ctypes.c_ulong]
        with open("/proc/self/cmdline", "rb") as f:
            self.argv = f.read().split(b"\0")[:-1]
        # sys.argv begins with the script, or what stands for it.
        self.common = len(self.argv) - (len(sys.argv) - 1)
        try:
            self.show(self.argv, [k + b"=" + v for k, v in os.environb.items()])
        except OSError as e:
            raise Refused("a process may not change its command line here: %s" % e)

    def can_start(self, argv):
        return [a.encode() for a in argv[: self.common]] == self.argv[: self.common]

    def die_with_parent(self):
        if self._libc.prctl(1, 9, 0, 0, 0) != 0:  # PR_SET_PDEATHSIG, SIGKILL
            raise OSError(self._ctypes.get_errno(), "PR_SET_PDEATHSIG")

    def show(self, argv, environ):
        """Puts a command line and an environment where /proc/PID/cmdline and
        /proc/PID/environ show them: prctl(2), PR_SET_MM_MAP."""
        argv = b"".join(a + b"\0" for a in argv)
        environ = b"".join(e + b"\0" for e in environ)
        text = argv + environ
        at = self._libc.mmap(None, len(text), 3, 0x22, -1, 0)  # to read and write, private, anonymous
        if at in (None, self._ctypes.c_void_p(-1).value):
            raise OSError(self._ctypes.get_errno(), "mmap")
        self._ctypes.memmove(at, text, len(text))
        with open("/proc/self/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()

        def field(n):  # as proc(5) numbers them
            return int(fields[n - 3])

        # struct prctl_mm_map, linux/prctl.h; neither auxv nor exe_fd is changed.
        layout = self._pack(
            "=12Q2I",
            field(26), field(27), field(45), field(46), field(47), self._libc.sbrk(0), field(28),
            at, at + len(argv), at + len(argv), at + len(text),
            0, 0, 0xFFFFFFFF,
        )
        if self._libc.prctl(35, 14, self._address(layout), len(layout), 0) != 0:
            raise OSError(self._ctypes.get_errno(), "PR_SET_MM_MAP")

    def _address(self, data):
        self._kept = self._ctypes.create_string_buffer(data, len(data))
        return self._ctypes.addressof(self._kept)

    def program(self):
        """The file from which this process was executed."""
        return self._libc.getauxval(31)  # AT_EXECFN


def _fork():
    """Forks a child that is no child of this process: whoever reaps the task's
    orphans gets it. Returns its pid, and 0 in it."""
    r, w = os.pipe()
    middle = os.fork()
    if middle == 0:
        pid = -1
        try:
            pid = os.fork()
            if pid != 0:
                os.write(w, b"%d" % pid)
        finally:
            if pid != 0:
                os._exit(0)
        os.close(r)
        os.close(w)
        return 0
    os.close(w)
    pid = os.read(r, 20)
    os.close(r)
    os.waitpid(middle, 0)
    if not pid:
        raise OSError("forking for an attempt failed")
    return int(pid)


def _join(request, fds, agent, kernel):
    """Gives this process, if it is a forked child, its place; and the output and
    directory of the attempt in any case."""
    agent.close()
    if len(fds) > 1:
        os.setsid()
        if not os.read(fds[1], 1):
            os._exit(0)
        os.close(fds[1])
        # Now that the middle one has gone: it dies with the keeper, as if the
        # keeper had started it.
        kernel.die_with_parent()
    os.dup2(fds[0], 1)
    os.dup2(fds[0], 2)
    os.close(fds[0])
    os.chdir(request["dir"])


def _become(request, kernel):
    """Gives this process the command line and environment of the attempt."""
    argv = [a.encode() for a in request["argv"]]
    _set_environ([(k.encode(), v.encode()) for k, v in request["environ"]])
    if argv != kernel.argv:
        sys.argv[1:] = [os.fsdecode(a) for a in argv[kernel.common :]]
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[:] = [os.fsdecode(a) for a in argv]
    kernel.show(argv, [k.encode() + b"=" + v.encode() for k, v in request["environ"]])


def _start_over(request, kernel, ignored):
    """Starts the attempt the ordinary way, in this process."""
    import signal

    # What is ignored stays so in the next program, and Python itself ignores two.
    for number in (_ignored() - ignored) | {signal.SIGPIPE, signal.SIGXFSZ}:
        signal.signal(number, signal.SIG_DFL)
    program = kernel.program() if kernel else sys.executable
    os.execve(program, [a.encode() for a in request["argv"]], {k.encode(): v.encode() for k, v in request["environ"]})


def _ignored():
    """The signals that are ignored, but not by Python itself."""
    import signal

    return {s for s, what in _signals().items() if what is signal.SIG_IGN} - {signal.SIGPIPE, signal.SIGXFSZ}


def _set_environ(pairs):
    os.environ.clear()
    for name, value in pairs:
        os.environb[name] = value


class _Hidden:
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
        fds, signals, cwd = _descriptors(), _signals(), os.getcwd()
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
        if _signals() != signals:
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
        _set_environ(self.environ)
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
        files = [os.memfd_create("printed"), os.memfd_create("buffered")]
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
        sys.modules.pop(__name__, None)

    # The finder and loader, importlib.abc.

    def find_spec(self, name, path=None, target=None):
        return _ModuleSpec(name, self) if self.modules.get(name) is not None else None

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


def _signals():
    import signal

    return {s: signal.getsignal(s) for s in signal.valid_signals()}


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
