"""Writes the fixtures with the real PyTorch; run with torch 2.9.

Beside each stands a .json file with what PyTorch itself reads back from it:
name -> dtype, shape, values.
"""
import collections
import json
import os
import shutil
import sys
import warnings

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp

warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))


def plain(t):
    t = t.detach().cpu()
    if t.is_quantized:
        t = t.int_repr()
    if t.is_complex():
        return [[repr(float(x.real)), repr(float(x.imag))] for x in t.reshape(-1)]
    if t.dtype.is_floating_point:
        return [repr(float(x)) for x in t.reshape(-1).to(torch.float64)]
    return [int(x) for x in t.reshape(-1).numpy()]


def walk(name, v, out):
    if isinstance(v, torch.Tensor):
        out[name] = {"dtype": str(v.dtype).removeprefix("torch."), "shape": list(v.shape), "values": plain(v)}
    elif isinstance(v, dict):
        for k, x in v.items():
            walk(name + "." + str(k) if name else str(k), x, out)
    elif isinstance(v, (list, tuple)):
        for i, x in enumerate(v):
            walk(name + "." + str(i) if name else str(i), x, out)
    return out


def describe(name, v):
    with open(os.path.join(here, name + ".json"), "w") as f:
        json.dump(walk("", v, {}), f, indent=0, sort_keys=True)


def train():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.rand(6, 5)).sum().backward()
        optimizer.step()
    return model, optimizer


def training():
    """What programs save: a model's and an optimizer's state, and more."""
    model, optimizer = train()
    state = {"step": 40, "model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()[:40].clone(), "args": {"lr": 1e-3}}
    torch.save(state, os.path.join(here, "train-40.pt"))
    describe("train-40.pt", torch.load(os.path.join(here, "train-40.pt")))


def kinds():
    x = torch.tensor([[0, -1.5, 2.25], [0.0078125, -224, float("nan")]])
    v = collections.OrderedDict()
    for t in (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
        v["f/" + str(t)] = x.to(t)
    for t in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64):
        i = torch.iinfo(t)
        v["i/" + str(t)] = torch.tensor([i.min, i.max, 7], dtype=t)
    v["bool"] = torch.tensor([True, False])
    v["complex64"] = torch.tensor([1 + 2j, -3.5j], dtype=torch.complex64)
    v["complex128"] = torch.tensor([1 + 2j, -3.5j], dtype=torch.complex128)
    v["scalar"] = torch.tensor(3.25)
    v["nothing"] = torch.zeros(0, 4)
    base = torch.arange(24.0).reshape(2, 3, 4)
    v["shared"] = [base, base[1, :, 1:3], base.permute(2, 0, 1), base[0, 0, 0].expand(3)]
    v["parameter"] = torch.nn.Parameter(torch.ones(2, 2))
    v["buffer"] = torch.nn.Buffer(torch.ones(2))
    v["quantised"] = torch.quantize_per_tensor(torch.tensor([-1.0, 0, 1]), 0.1, 10, torch.quint8)
    torch.save(v, os.path.join(here, "kinds.pth"))
    describe("kinds.pth", torch.load(os.path.join(here, "kinds.pth"), weights_only=False))


def forms():
    """The old form, one without checksums, a tensor alone, a whole module."""
    torch.save({"a": torch.ones(5)}, os.path.join(here, "legacy.pt"), _use_new_zipfile_serialization=False)
    torch.serialization.set_crc32_options(False)
    torch.save({"a": torch.arange(5)}, os.path.join(here, "unchecked.pt"))
    torch.serialization.set_crc32_options(True)
    torch.save(torch.arange(7), os.path.join(here, "alone.pt"))
    torch.save(torch.nn.Linear(2, 1), os.path.join(here, "module.pt"))


def rank(n, world, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571", RANK=str(n), WORLD_SIZE=str(world))
    dist.init_process_group("gloo")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(1)
    whole = {
        "rows": torch.randn(7, 3), "columns": torch.arange(20, dtype=torch.int64).reshape(2, 10), "copy": torch.randn(4).to(torch.bfloat16),
    }
    state = {
        "model": {
            "rows": distribute_tensor(whole["rows"], mesh, [Shard(0)]),
            "columns": distribute_tensor(whole["columns"], mesh, [Shard(1)]),
            "copy": distribute_tensor(whole["copy"], mesh, [Replicate()]),
        },
        "scalar": torch.tensor(2.5), "step": 300, "name": "dcp",
    }
    dcp.save(state, checkpoint_id=path)
    if n == 0:
        describe("dcp-300", {"model": whole, "scalar": state["scalar"]})
    dist.destroy_process_group()


def distributed():
    path = os.path.join(here, "dcp-300")
    shutil.rmtree(path, ignore_errors=True)
    mp.spawn(rank, args=(2, path), nprocs=2)


if __name__ == "__main__":
    for f in (training, kinds, forms, distributed):
        if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]:
            f()
