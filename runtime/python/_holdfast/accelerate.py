"""What Holdfast does in programs that import Accelerate, by this setting.

HOLDFAST_ACCELERATE_CLUSTER=0  nothing; otherwise Accelerate's launcher knows the tasks of
    the job and how many processes each has, and ranks without an accelerator are a group on
    CPUs, where each would train for itself.
"""

import functools
import os

_VARIABLES = ("GROUP_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "PET_NPROC_PER_NODE", "WORLD_SIZE")

# ACCELERATE_USE_CPU is Accelerator's argument cpu (accelerate/state.py).
_USE_CPU = "ACCELERATE_USE_CPU"

# Options by which a user, or the configuration, chooses how the launcher starts processes.
_KINDS = ("multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm")


def hooks():
    """Called when Accelerate is looked for: pairs of a module's name and what is to be
    called with the module when it has been executed."""
    if os.environ.get("HOLDFAST_ACCELERATE_CLUSTER") == "0" or not all(v in os.environ for v in _VARIABLES):
        return
    yield "accelerate.state", _use_cpus
    yield "accelerate.commands.utils", _tell_launcher


def _has_accelerator():
    import importlib.util
    import torch

    if importlib.util.find_spec("torch_xla"):
        return True
    known = getattr(torch, "accelerator", None)  # since PyTorch 2.6
    return known.is_available() if known else torch.cuda.is_available()


def _use_cpus(_):
    """Without it, Accelerator() of a rank that finds no accelerator knows no other rank
    (PartialState._prepare_backend in accelerate/state.py)."""
    if int(os.environ["WORLD_SIZE"]) > 1 and _USE_CPU not in os.environ and not _has_accelerator():
        os.environ[_USE_CPU] = "true"


def _tell_launcher(utils):
    """Fills in the launcher's arguments (launch_command_parser in
    accelerate/commands/launch.py)."""
    parser = getattr(utils, "CustomArgumentParser", None)
    if parser is None:
        return  # then they have to be given, as with any Accelerate

    @functools.wraps(parser.parse_args)
    def parse_args(self, args=None, namespace=None):
        parsed = super(parser, self).parse_args(args, namespace)
        if hasattr(parsed, "training_script") and hasattr(parsed, "num_machines"):
            _fill(parsed)
        return parsed

    parser.parse_args = parse_args


def _fill(args):
    """Says which task of how many this is. What the user has given stays; it comes before
    what a configuration says, which cannot know."""
    tasks, processes = int(os.environ["GROUP_WORLD_SIZE"]), int(os.environ["PET_NPROC_PER_NODE"])
    if tasks * processes == 1:
        return
    for name, value in (
        ("num_machines", tasks),
        ("num_processes", tasks * processes),
        ("machine_rank", int(os.environ["NODE_RANK"])),
        ("main_process_ip", os.environ["MASTER_ADDR"]),
        ("main_process_port", int(os.environ["MASTER_PORT"])),
    ):
        if getattr(args, name, None) is None:
            setattr(args, name, value)
    if any(getattr(args, kind, False) for kind in _KINDS) or _configured(args) or not args.cpu and _has_accelerator():
        return
    if args.num_processes == args.num_machines:
        args.cpu = True
    else:
        # On CPUs it would start one process, whatever their number (simple_launcher), and
        # with this it has torchrun start them (multi_gpu_launcher), with what is set here.
        args.cpu, args.multi_gpu = False, True
        os.environ[_USE_CPU] = "true"


def _configured(args):
    """Reports whether the launcher reads a configuration."""
    if args.config_file is not None:
        return True
    try:
        from accelerate.commands.config.config_args import default_config_file
    except ImportError:
        return False
    return os.path.isfile(default_config_file)
