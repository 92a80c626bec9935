"""Writes checkpoints of Orbax into a directory, and prints what Orbax restores of them.

Two processes of JAX make the checkpoint that both write. Printed is an object: of each
checkpoint the arrays, by their names, as [dtype, shape, bytes in base64]."""
import base64
import json
import os
import shutil
import socket
import subprocess
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import tensorstore as ts
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P


def tree(sharded):
    return {
        "params": {"dense": {"kernel": sharded(np.arange(40, dtype=np.float32).reshape(4, 10)), "bias": jnp.arange(6, dtype=jnp.bfloat16) / 4}},
        "step": jnp.int32(7), "lr": 0.5, "seen": 3,
        "layers": [np.linspace(-1, 1, 700), np.array([1, 200], np.uint8)],
        "flags": np.array([True, False, True]), "half": np.arange(3, dtype=np.float16) / 3,
        "zeros": sharded(np.zeros((4, 2), np.float32)), "none": None, "text": "hello",
    }


def restored(where):
    """What Orbax restores of a tree, as NumPy's."""
    with ocp.PyTreeCheckpointer() as reader:
        metadata = reader.metadata(where)
        metadata = getattr(metadata, "item_metadata", metadata)
        metadata = getattr(metadata, "tree", metadata)
        args = jax.tree.map(lambda m: ocp.RestoreArgs(restore_type=str if "String" in type(m).__name__ else np.ndarray), metadata)
        found = reader.restore(where, restore_args=args)
    names = {}
    for keys, x in jax.tree_util.tree_flatten_with_path(found)[0]:
        name = ".".join(str(getattr(k, "key", getattr(k, "idx", None))) for k in keys)
        if not isinstance(x, str):
            names[name] = describe(x)
    return names


def describe(x):
    x = np.asarray(x)
    return [str(x.dtype), list(x.shape), base64.b64encode(x.tobytes()).decode()]


def of_both(out, rank, port):
    """The part of one of two processes."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize("localhost:%d" % port, 2, rank)
    mesh = Mesh(np.array(jax.devices()).reshape(4), ("x",))

    def sharded(x):
        return jax.make_array_from_callback(x.shape, NamedSharding(mesh, P("x")), lambda at: x[at])

    everywhere = NamedSharding(mesh, P())
    state = {"rows": sharded(np.arange(24, dtype=np.float32).reshape(8, 3)), "large": sharded(np.random.default_rng(1).random((4, 2000))),
             "same": jax.make_array_from_callback((2,), everywhere, lambda at: np.arange(2.0)[at])}
    with ocp.CheckpointManager(out + "/managed") as manager:
        manager.save(20, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
    jax.distributed.shutdown()


def main(out):
    listener = socket.create_server(("localhost", 0))
    port = listener.getsockname()[1]
    listener.close()
    both = [subprocess.Popen([sys.executable, __file__, out, str(rank), str(port)], stdout=sys.stderr) for rank in range(2)]

    mesh = Mesh(np.array(jax.devices()), ("x",))
    columns = NamedSharding(mesh, P(None, "x"))
    state = tree(lambda x: jax.device_put(x, columns))
    said = {}

    for name, options in {"zarr": dict(use_ocdbt=False), "zarr3": dict(use_zarr3=True), "zarr3-files": dict(use_ocdbt=False, use_zarr3=True)}.items():
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)) as writer:
            writer.save(out + "/" + name, state)
        said[name] = restored(out + "/" + name)

    # Cut into chunks that do not go into the shape, and so many that nodes are large and much compressed.
    several = state | {"wide": np.zeros(20_000)}
    small = jax.tree.map(lambda _: ocp.SaveArgs(chunk_byte_size=64), several)
    for name, zarr3 in {"cut": False, "cut3": True}.items():
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler(use_zarr3=zarr3)) as writer:
            writer.save(out + "/" + name, several, save_args=small)
        said[name] = restored(out + "/" + name)

    with ocp.PyTreeCheckpointer() as writer:
        writer.save(out + "/many", {str(i): np.full(1, i, np.float32) for i in range(600)})
    said["many"] = restored(out + "/many")

    # Several items, of which one is named.
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as writer:
        writer.save(out + "/items", ocp.args.Composite(state=ocp.args.PyTreeSave(state), default=ocp.args.PyTreeSave({"a": np.arange(3.0)}), more=ocp.args.JsonSave({"b": 1})))
    said["items"] = {"state." + k: v for k, v in restored(out + "/items/state").items()} | restored(out + "/items/default")

    # What TensorStore may write by itself: chunks that are not stored or partly outside, shards of several chunks,
    # a tree of several levels, values in files, and former versions.
    said["own"] = own(out + "/own")

    for p in both:
        if p.wait() != 0:
            sys.exit("one of two processes failed")
    said["managed/20"] = restored(out + "/managed/20/default")
    shutil.copytree(out + "/managed/20", out + "/managed/unmerged")  # as it is before the merge
    os.remove(out + "/managed/unmerged/default/manifest.ocdbt")
    shutil.rmtree(out + "/managed/unmerged/default/d")
    said["managed/unmerged"] = said["managed/20"]
    print(json.dumps(said))


def own(where):
    os.makedirs(where)
    for name, text in {"_METADATA": "{}", "_CHECKPOINT_METADATA": json.dumps({"item_handlers": "x", "commit_timestamp_nsecs": 1})}.items():
        with open(where + "/" + name, "w") as f:
            f.write(text)
    kvstore = {"driver": "ocdbt", "base": "file://" + where + "/", "config": {"max_inline_value_bytes": 20, "max_decoded_node_bytes": 200, "version_tree_arity_log2": 2}}
    said = {}

    def array(name, spec, dtype, shape, fill=None, **parts):
        if fill is not None:
            fill = np.array(fill, dtype.numpy_dtype)
        x = ts.open({**spec, "kvstore": {**kvstore, "path": name + "/"}}, create=True, dtype=dtype, shape=shape, fill_value=fill).result()
        for at, value in parts.items():
            x[eval("np.s_[" + at[1:].replace("_", ":").replace("c", ",") + "]")] = np.asarray(value).astype(dtype.numpy_dtype)
        said[name] = describe(x.read().result())

    def v2(chunks, compressor={"id": "zstd"}, separator="."):
        return {"driver": "zarr", "metadata": {"chunks": chunks, "compressor": compressor, "dimension_separator": separator}}

    def v3(shard, chunks):
        inner = [{"name": "bytes"}, {"name": "zstd"}]
        shards = {"name": "sharding_indexed", "configuration": {"chunk_shape": chunks, "codecs": inner}}
        return {"driver": "zarr3", "metadata": {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shard}}, "codecs": [shards]}}

    array("partly", v2([2, 3]), ts.float32, [5, 7], 1.5, a0_2c0_3=1, a4_5c6_7=2)
    array("never", v2([4]), ts.bfloat16, [10])
    array("nan", v2([4]), ts.float64, [6], np.nan, a0_2=3)
    array("less", v2([2], None, "/"), ts.int16, [5], -7, a0_1=-1)
    array("most", v2([1]), ts.uint64, [2], 2**64 - 1, a0_1=2**63)
    array("complex", v2([2]), ts.complex64, [3], a0_3=[1, 2j, 3 + 1j])
    array("deep", v2([1, 1, 2, 2]), ts.int32, [2, 3, 3, 5], a__c__c__c__=np.arange(90).reshape(2, 3, 3, 5))
    array("cube", v2([2, 2, 2]), ts.int32, [3, 3, 3], a__c__c__=np.arange(27).reshape(3, 3, 3))
    array("shards", v3([4, 4], [2, 2]), ts.int32, [7, 9], 9, a0_3c2_9=np.arange(21).reshape(3, 7))
    array("half", v3([6], [3]), ts.bfloat16, [9], 1, a6_9=[0, 1, 2])
    array("e4m3", v3([4], [4]), ts.float8_e4m3fn, [4], a0_4=[1, 2, 0.5, -3])
    array("many", v2([1]), ts.int32, [300], a0_300=np.arange(300))
    return said


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(os.path.abspath(sys.argv[1]))
    else:
        of_both(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
