"""What Holdfast does in programs that import torchft, by this setting.

HOLDFAST_TORCHFT_CLUSTER=0  nothing; otherwise a replica group has a store where no torchrun
    serves one, and its peers reach it at the address in HOLDFAST_TORCHFT_HOST, which is good
    on all nodes, where torchft would tell them the node's own name.
"""

import functools
import os

from . import ports

# As torchrun says that it serves the store: every rank then only connects to it
# (torch/distributed/rendezvous.py). Processes that this one starts inherit it.
_SERVED = "TORCHELASTIC_USE_AGENT_STORE"

_VARIABLES = ("HOLDFAST_TORCHFT_HOST", "MASTER_ADDR", "MASTER_PORT", "RANK")

_store = None


def hooks():
    """Called when torchft is looked for: pairs of a module's name and what is to be called
    with the module when it has been executed."""
    if os.environ.get("HOLDFAST_TORCHFT_CLUSTER") == "0" or not all(v in os.environ for v in _VARIABLES):
        return
    yield "torchft", _serve_store
    yield "torchft.manager", _tell_address
    yield "torchft.checkpointing.http_transport", _tell_address_of_checkpoints


def _serve_store(_):
    """Starts the store of the replica group in its first process, as torchrun does beside
    them. A program that has made its process group has one already."""
    global _store
    from torch import distributed

    if os.environ.get(_SERVED) == "True" or distributed.is_initialized():
        return
    os.environ[_SERVED] = "True"
    port = int(os.environ["MASTER_PORT"])
    if os.environ["RANK"] == "0" and ports.wait_until_free(port):
        _store = distributed.TCPStore(os.environ["MASTER_ADDR"], port, is_master=True, wait_for_workers=False)


def _tell_address(manager):
    """Has managers tell that address (Manager in torchft/manager.py)."""
    init = manager.Manager.__init__

    @functools.wraps(init)
    def init_with_address(self, *args, **kwargs):
        kwargs.setdefault("hostname", os.environ["HOLDFAST_TORCHFT_HOST"])
        init(self, *args, **kwargs)

    manager.Manager.__init__ = init_with_address


def _tell_address_of_checkpoints(transport):
    """Has the servers of checkpoints for peers tell that address
    (torchft/checkpointing/http_transport.py)."""
    address = transport.HTTPTransport.address

    @functools.wraps(address)
    def address_for_peers(self):
        scheme, _, rest = address(self).partition("://")
        _, _, port_and_path = rest.partition(":")
        return "%s://%s:%s" % (scheme, os.environ["HOLDFAST_TORCHFT_HOST"], port_and_path)

    transport.HTTPTransport.address = address_for_peers
