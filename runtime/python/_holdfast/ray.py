"""Makes a task a node of a Ray cluster; started in place of the task's command, as

    python -m _holdfast.ray ARGUMENT... -- COMMAND...   the head, with the program
    python -m _holdfast.ray ARGUMENT...                 a worker

with arguments of ray start. The words in HOLDFAST_RAY_START come after them, and win.

The head ends as its program does. A worker whose head is gone leaves that cluster and joins
the next one at the same address. It ends with an error when Ray's processes have ended while
the head is there, or have not joined it.
"""

import contextlib
import importlib.util
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

_LOOK_SECS = 0.25  # between two looks at processes and at the head
_PROBE_SECS = 5  # for the head to answer
_KEEP_SECS = 5  # for a connection to the head: gRPC's server ends one on which nothing is said, after 120 s
_END_SECS = 3  # for Ray's processes to end
_TAIL_LINES = 30

# The longest name of Ray's directory with which those of its sockets, session_TIME_PID/sockets/
# plasma_store below it, still fit into a socket's address (107 bytes).
_LONGEST_DIR = 40


def main(arguments):
    signal.signal(signal.SIGTERM, _end)
    if "--" in arguments:
        at = arguments.index("--")
        return _head(arguments[:at], arguments[at + 1 :])
    return _worker(arguments)


def _end(number, frame):
    raise SystemExit(128 + number)


def _head(arguments, command):
    arguments = ["--head", "--port=" + os.environ["HOLDFAST_PORT"]] + arguments
    if importlib.util.find_spec("grpc"):  # then Ray Client's server is started, by default on one port for all clusters of a machine
        arguments.append("--ray-client-server-port=%d" % _free_port())
    with _ray(arguments) as ray:
        while not ray.started():
            if ray.ended():
                return ray.explain("Ray's head has not started")
            time.sleep(_LOOK_SECS)
        # The agent's SIGTERM reaches the program, too, which may have something to save.
        signal.signal(signal.SIGTERM, lambda *_: None)
        try:
            program = subprocess.Popen(command)
        except OSError as e:
            sys.stderr.write("holdfast: running %s: %s\n" % (command[0], e))
            return 127
        while program.poll() is None:
            if ray.ended():
                program.kill()
                program.wait()
                return ray.explain("a process of Ray's head has ended")
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(_LOOK_SECS)
    if program.returncode < 0:  # by a signal: this process ends so, too
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-program.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -program.returncode)
    return program.returncode


def _worker(arguments):
    head = _Head(os.environ["RAY_ADDRESS"])
    arguments = ["--address=" + head.address] + arguments
    while True:
        while head.gone():
            time.sleep(_LOOK_SECS)
        with _ray(arguments) as ray:
            while not ray.ended() and not head.gone():
                time.sleep(_LOOK_SECS)
            if ray.ended() and not head.gone():
                return ray.explain("a process of this node of Ray has ended" if ray.started() else "this node has not joined Ray's head at " + head.address)
        print("holdfast: Ray's head at %s is gone; this node joins the next one there" % head.address, flush=True)
        head.forget()


class _Head:
    """Ray's head. A connection to its server is kept, which ends with it: the next head may
    listen there a moment later, and a node that goes on as before is ended by that one."""

    def __init__(self, address):
        self.address = address
        host, _, port = address.rpartition(":")
        self._at = host.strip("[]"), int(port)
        self._kept, self._until = None, 0

    def gone(self):
        """Whether the head that was there has ended, or none is there. One that accepts a
        connection and is silent is taken to be busy."""
        if self._ended():
            return True
        if self._kept is not None and time.monotonic() < self._until:
            return False
        for _ in range(2):
            connection, there = self._connect()
            if self._ended():
                if connection is not None:
                    connection.close()
                return True
            if connection is not None:
                self.forget()
                connection.setblocking(False)
                self._kept, self._until = connection, time.monotonic() + _KEEP_SECS
            if there:
                return False
            time.sleep(_LOOK_SECS)
        return True

    def forget(self):
        """Has the next head be another one."""
        if self._kept is not None:
            self._kept.close()
        self._kept = None

    def _connect(self):
        """A connection, if the head's server, of gRPC, speaks on it, and whether one is there."""
        try:
            connection = socket.create_connection(self._at, _PROBE_SECS)
        except socket.timeout:
            return None, True
        except OSError:
            return None, False
        there = False
        try:
            if connection.recv(1) != b"":
                return connection, True
        except socket.timeout:
            there = True
        except OSError:
            pass
        connection.close()
        return None, there

    def _ended(self):
        """Whether the connection that is kept has ended."""
        if self._kept is None:
            return False
        try:
            while self._kept.recv(1 << 16):
                pass
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True


@contextlib.contextmanager
def _ray(arguments):
    """Ray's processes on this node, which are ended in the end."""
    directory = tempfile.mkdtemp(prefix="ray-")
    short = directory
    try:
        if len(directory) > _LONGEST_DIR:
            short = tempfile.mktemp(prefix="ray-", dir="/tmp")
            os.symlink(directory, short)
        ray = _Ray(arguments, short)
        try:
            yield ray
        finally:
            ray.end()
    finally:
        if short != directory:
            with contextlib.suppress(OSError):
                os.unlink(short)
        shutil.rmtree(directory, ignore_errors=True)


class _Ray:
    def __init__(self, arguments, directory):
        self._directory = directory
        self._log = os.path.join(directory, "start.log")
        start = [sys.executable, "-m", "ray.scripts.scripts"]
        if not importlib.util.find_spec("ray"):
            start = [shutil.which("ray") or "ray"]
        start += ["start", "--block", "--temp-dir=" + directory, "--node-ip-address=" + socket.gethostbyname(os.environ["HOLDFAST_HOST"])]
        # Workers take free ports: the usual range, 10002 to 19999, is refused where the head's is in it.
        start += ["--min-worker-port=0", "--max-worker-port=0"]
        start += arguments + shlex.split(os.environ.get("HOLDFAST_RAY_START", ""))
        # Modules beside the program are found by Ray's workers, on whichever node.
        environ = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), os.getcwd()])))
        with open(self._log, "wb") as log:
            # Its own session: SIGTERM to the task's processes is for the program.
            self._process = subprocess.Popen(start, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environ, start_new_session=True)

    def started(self):
        """Whether ray start has written down the address of the cluster that it has started
        or joined, which is the last that it does (ray/scripts/scripts.py)."""
        return os.path.exists(os.path.join(self._directory, "ray_current_cluster"))

    def ended(self):
        return self._process.poll() is not None

    def end(self):
        self._process.terminate()
        try:
            self._process.wait(_END_SECS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def explain(self, what):
        with open(self._log, errors="replace") as log:
            lines = log.read().splitlines()
        sys.stderr.write("\n".join(lines[-_TAIL_LINES:] + ["holdfast: %s: ray start ended with exit code %s" % (what, self._process.returncode)]) + "\n")
        return 1


def _free_port():
    with socket.socket() as s:
        s.bind(("", 0))
        return s.getsockname()[1]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
