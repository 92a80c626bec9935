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

from _holdfast.hidden import Hidden, Refused, set_environ, signal_handlers


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
            hidden = Hidden(name, request["path"], request["environ"])
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
        # Now that the middle one has gone: it dies with the init process, as if
        # that had started it.
        kernel.die_with_parent()
    os.dup2(fds[0], 1)
    os.dup2(fds[0], 2)
    os.close(fds[0])
    os.chdir(request["dir"])


def _become(request, kernel):
    """Gives this process the command line and environment of the attempt."""
    argv = [a.encode() for a in request["argv"]]
    set_environ([(k.encode(), v.encode()) for k, v in request["environ"]])
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

    return {s for s, what in signal_handlers().items() if what is signal.SIG_IGN} - {signal.SIGPIPE, signal.SIGXFSZ}
