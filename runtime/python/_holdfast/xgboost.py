"""What Holdfast does in programs that import XGBoost, by this setting.

HOLDFAST_XGBOOST_CLUSTER=0  xgboost.collective.init finds nothing by itself; otherwise it
    needs no arguments, and the first rank starts the tracker.
"""

import atexit
import functools
import os
import sys
import threading
import time

from . import ports

_VARIABLES = ("DMLC_TRACKER_URI", "DMLC_TRACKER_PORT", "DMLC_TASK_ID", "DMLC_NUM_WORKER")

# How long a rank waits for the first one to start the tracker, which may read its data
# before; and how long that waits at its end for the others.
_START_SECS = 30 * 60
_END_SECS = 5 * 60


def hooks():
    """Called when XGBoost is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_XGBOOST_CLUSTER") != "0" and all(v in os.environ for v in _VARIABLES):
        yield "xgboost.collective", _find_the_job


def _find_the_job(collective):
    """Has init take from the environment what it is not given (xgboost/collective.py);
    CommunicatorContext calls it."""
    init, finalize = collective.init, collective.finalize
    group = _Group()

    @functools.wraps(init)
    def find_and_init(**args):
        if not _for_the_job(args):
            return init(**args)
        group.enter()
        for name, value in (
            ("dmlc_tracker_uri", os.environ["DMLC_TRACKER_URI"]),
            ("dmlc_tracker_port", int(os.environ["DMLC_TRACKER_PORT"])),
            ("dmlc_task_id", os.environ["DMLC_TASK_ID"]),
        ):
            if args.get(name) is None:
                args[name] = value
        if int(os.environ["DMLC_TASK_ID"]) == 0:
            group.start_tracker()
            return init(**args)
        return _patiently(init, args)

    @functools.wraps(finalize)
    def finalize_and_wait():
        failed = sys.exc_info()[0] is not None  # as in the end of a with statement
        finalize()
        if not failed:
            group.wait_for_others()

    collective.init, collective.finalize = find_and_init, finalize_and_wait


def _for_the_job(args):
    """Whether the ranks of the job are meant: another tracker has other addresses."""
    if args.get("dmlc_communicator") not in (None, "rabit"):
        return False
    return args.get("dmlc_tracker_uri") in (None, os.environ["DMLC_TRACKER_URI"]) and str(
        args.get("dmlc_tracker_port") or os.environ["DMLC_TRACKER_PORT"]
    ) == os.environ["DMLC_TRACKER_PORT"]


def _patiently(init, args):
    """Calls init until the tracker is there. init itself tries for some seconds only."""
    deadline = time.monotonic() + _START_SECS
    while True:
        try:
            return init(**args)
        except Exception as e:
            if "Failed to connect to the tracker" not in str(e) or time.monotonic() > deadline:
                raise


class _Group:
    """The tracker of the ranks, in the first of them. It serves one group, as XGBoost's
    do: once all ranks have finalized, it has ended."""

    def __init__(self):
        self._tracker = None
        self._entered = False

    def enter(self):
        if self._entered:
            raise RuntimeError(
                "this process enters the group of the job's ranks a second time, and XGBoost's tracker serves one group only, so it would wait for ever: "
                "put one CommunicatorContext around all that the ranks do together, or let the script start a tracker of its own for each"
            )
        self._entered = True

    def start_tracker(self):
        from xgboost.tracker import RabitTracker

        if self._tracker is not None or not hasattr(RabitTracker, "worker_args"):
            return  # before XGBoost 2.1 a script starts it, as without Holdfast
        port = int(os.environ["DMLC_TRACKER_PORT"])
        if not ports.wait_until_free(port):
            return  # the script has a tracker of its own there
        tracker = RabitTracker(n_workers=int(os.environ["DMLC_NUM_WORKER"]), host_ip="0.0.0.0", port=port, sortby="task")
        # Never freed: what that complains of would hide why the program ends.
        atexit.register(tracker.__dict__.pop, "handle", None)
        tracker.start()
        if tracker.worker_args()["dmlc_tracker_port"] != port:
            raise RuntimeError("the tracker of XGBoost before 3.0 takes no notice of the port that it is to listen on, so the other ranks cannot find it; use XGBoost 3.0 or newer")
        self._tracker = tracker

    def wait_for_others(self):
        """Waits until all ranks have finalized: they need the tracker for that."""
        if self._tracker is None:
            return

        def wait():
            try:
                self._tracker.wait_for()
            except Exception:
                pass  # a rank that was lost shows elsewhere

        waiting = threading.Thread(target=wait, daemon=True)
        waiting.start()
        waiting.join(_END_SECS)
