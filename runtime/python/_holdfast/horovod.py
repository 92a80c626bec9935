"""What Holdfast does in programs that import Horovod, by this setting.

HOLDFAST_HOROVOD_RENDEZVOUS=0  horovod.init expects that the rendezvous is served; otherwise
    the first rank serves it, and all wait there until all have come.
"""

import functools
import http.client
import http.server
import os
import threading
import time

_VARIABLES = ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_GLOO_RENDEZVOUS_ADDR", "HOROVOD_GLOO_RENDEZVOUS_PORT")

# How long a rank waits for the others, which may read their data before, and how often it
# looks.
_START_SECS = 30 * 60
_LOOK_SECS = 0.1

# The largest value that is kept: the addresses of one rank for all others, of which gloo
# takes some hundred bytes for each.
_MOST_BYTES = 16 << 20


def hooks():
    """Called when Horovod is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_HOROVOD_RENDEZVOUS") != "0" and all(v in os.environ for v in _VARIABLES):
        yield "horovod.common.basics", _serve_the_job


def _serve_the_job(basics):
    """Has init serve the rendezvous, or wait for it. init itself tries for a second or two
    to reach it, and waits half a minute there for the other ranks."""
    init = basics.HorovodBasics.init
    ranks = _Ranks()

    @functools.wraps(init)
    def meet_and_init(self, *args, **kwargs):
        ranks.meet()
        return init(self, *args, **kwargs)

    basics.HorovodBasics.init = meet_and_init


class _Ranks:
    """The ranks of the job, as one of them sees them."""

    def __init__(self):
        self._rank = int(os.environ["HOROVOD_RANK"])
        self._size = int(os.environ["HOROVOD_SIZE"])
        self._address = os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])
        self._server = None
        self._met = 0

    def meet(self):
        """Returns once all ranks have called it as often as this one."""
        self._met += 1
        scope = "/holdfast-%d/" % self._met
        if self._rank == 0:
            if self._server is None:
                self._server = _Server(self._address[1])
            self._until(lambda: all(self._server.values.get(scope + str(r)) is not None for r in range(1, self._size)))
            self._server.values[scope + "all"] = b"1"
            return
        self._until(lambda: self._ask("PUT", scope + str(self._rank)) == 200)
        self._until(lambda: self._ask("GET", scope + "all") == 200)

    def _until(self, is_so):
        deadline = time.monotonic() + _START_SECS
        while not is_so():
            if time.monotonic() > deadline:
                raise RuntimeError(
                    "not all %d ranks of the job have called horovod's init %d minutes after rank %d did; look in the logs of the other tasks for what keeps them"
                    % (self._size, _START_SECS // 60, self._rank)
                )
            time.sleep(_LOOK_SECS)

    def _ask(self, method, path):
        """Gives the answer's status; None if the first rank does not answer."""
        connection = http.client.HTTPConnection(*self._address, timeout=10)
        try:
            connection.request(method, path, body=b"1" if method == "PUT" else None)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


class _Server(http.server.ThreadingHTTPServer):
    """The store of Horovod's rendezvous: what is PUT under a path is what GET returns, until
    DELETE. A rank deletes its address when all have read it. It serves until the process
    ends."""

    daemon_threads = True
    request_queue_size = 1024  # all ranks come at once

    def __init__(self, port):
        self.values = {}
        super().__init__(("", port), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        value = self.server.values.get(self.path)
        self._answer(404 if value is None else 200, value or b"")

    def do_PUT(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MOST_BYTES:
            self._answer(413)
            return
        value = self.rfile.read(int(length))
        if len(value) == int(length):
            self.server.values[self.path] = value
            self._answer(200)

    def do_DELETE(self):
        self.server.values.pop(self.path, None)
        self._answer(200)

    def _answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass
