"""What Holdfast does in programs that import DeepSpeed, by this setting.

HOLDFAST_DEEPSPEED_CLUSTER=0  DeepSpeed's launcher finds what it finds by itself; otherwise
    that of each task starts the processes of its own task, without ssh, and the task's
    GPUs are its.
"""

import functools
import os
import sys
import tempfile

# The launcher's scripts, and the module that python -m runs.
_SCRIPTS = ("deepspeed", "deepspeed.pt", "ds")
_MODULE = "deepspeed.launcher.runner"

_VARIABLES = ("HOLDFAST_DEEPSPEED_HOSTS", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")

# Variables that say where a process stands, and which the launcher does not set for those
# that it starts: they are those of the task.
_OTHERS = ("LOCAL_WORLD_SIZE", "ROLE_RANK", "ROLE_WORLD_SIZE")


def hooks():
    """Called when DeepSpeed is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_DEEPSPEED_CLUSTER") == "0" or not all(v in os.environ for v in _VARIABLES):
        return
    if _launches():
        yield "deepspeed.launcher", _tell_launcher
    yield "deepspeed.accelerator.cuda_accelerator", _choose_among_own


def _launches():
    """Reports whether this program is the launcher."""
    if sys.argv[0] == "-m":  # until the module is found
        return any(word.endswith(_MODULE) for word in _command_line())
    return os.path.basename(sys.argv[0]) in _SCRIPTS


def _command_line():
    """The words by which this program was started."""
    words = getattr(sys, "orig_argv", None)  # since Python 3.10
    if words is None:
        with open("/proc/self/cmdline", "rb") as f:
            words = [os.fsdecode(w) for w in f.read().split(b"\0")]
    return words


def _tell_launcher(_):
    """Puts in front of the launcher's arguments what has it start the processes of this
    task only (parse_args and main in deepspeed/launcher/runner.py, since version 0.14.5).
    Of an option that is given twice, the later one counts, so that the user's wins."""
    hosts = [h.rpartition(":") for h in os.environ["HOLDFAST_DEEPSPEED_HOSTS"].split(",")]
    if len(hosts) == 1:  # as it is called in --include, where there is no hostfile
        hosts = [("localhost", "", hosts[0][2])]
    fd, hostfile = tempfile.mkstemp(prefix="hostfile-")
    with os.fdopen(fd, "w") as f:
        f.writelines("%s slots=%s\n" % (name, processes) for name, _, processes in hosts)
    sys.argv[1:1] = [
        "--hostfile=" + hostfile, "--no_ssh", "--node_rank=" + os.environ["NODE_RANK"],
        "--master_addr=" + os.environ["MASTER_ADDR"], "--master_port=" + os.environ["MASTER_PORT"],
    ]
    for name in _OTHERS:
        os.environ.pop(name, None)


def _choose_among_own(module):
    """Has the launcher number the GPUs that the task may use, where it would take the
    first ones of the node (main in deepspeed/launcher/launch.py)."""
    accelerator = getattr(module, "CUDA_Accelerator", None)
    choose = getattr(accelerator, "set_visible_devices_envs", None)
    if choose is None:
        return

    @functools.wraps(choose)
    def choose_own(self, current_env, local_accelerator_ids):
        own = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        if own != [""] and all(i < len(own) for i in local_accelerator_ids):
            local_accelerator_ids = [own[i] for i in local_accelerator_ids]
        choose(self, current_env, local_accelerator_ids)

    accelerator.set_visible_devices_envs = choose_own
