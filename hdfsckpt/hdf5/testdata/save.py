# Writes files of HDF5 into a directory, and prints what h5py reads in them: for each dataset
# its type, its shape, and its bytes in base64, little endian; null if it is no number. The files
# in this directory were recorded with h5py 3.14.0 and HDF5 1.14.6.
import base64
import json
import os
import sys

import h5py
import ml_dtypes
import numpy as np


def kinds(f):
    for name in "f2 f4 f8 >f2 >f4 >f8 i1 i2 i4 i8 u1 u2 u4 u8 >i2 >i8 ? c8 S5".split():
        f.create_dataset(name, data=np.array([0, 1, 1], dtype=name))
    f["scalar"], f["empty"], f["null"], f["text"] = np.float32(3.5), np.zeros((0, 3), "f4"), h5py.Empty("f4"), "hello"
    f.create_dataset("named", data=np.array([1, -2, 3.5], ml_dtypes.bfloat16)).attrs["dtype"] = "bfloat16"
    f.create_dataset("fixed", data=np.array([1, -2, 3.5], ml_dtypes.bfloat16)).attrs["dtype"] = np.bytes_("bfloat16")
    f.create_dataset("opaque", data=np.array([1, -2, 3.5], ml_dtypes.bfloat16))
    f.create_dataset("colours", data=np.array([2, 7], "i2"), dtype=h5py.enum_dtype({"red": 2, "a deep blue": 7}, "i2"))
    f.create_dataset("pairs", data=np.array([(1, 2)], dtype=[("a", "i4"), ("b", "f8")]))
    f.create_dataset("unwritten", shape=(4,), dtype="f4")
    space, create = h5py.h5s.create_simple((3,)), h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    create.set_layout(h5py.h5d.COMPACT)
    h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32BE, space, create).write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([1, 2, 3], "f4"))


def links(f):
    for i in range(12):
        f.create_dataset(f"many/{i}", data=np.int32(i))
    f["few/one"], f["few/deeper/two"] = np.int16(1), np.int16(2)
    f["few/same"] = f["few/one"]
    f["few/soft"], f["few/away"] = h5py.SoftLink("/few/one"), h5py.ExternalLink("other.h5", "/x")
    f["few/round"] = f["few"]


def chunks(f):
    table = np.arange(11 * 7, dtype="f4").reshape(11, 7)
    f.create_dataset("plain", data=table, chunks=(4, 3))
    f.create_dataset("gzip", data=table, chunks=(4, 3), compression="gzip")
    f.create_dataset("shuffled", data=table.astype(">f8"), chunks=(11, 3), compression="gzip", shuffle=True)
    f.create_dataset("summed", data=table, chunks=(11, 7), fletcher32=True)
    f.create_dataset("part", shape=(4,), dtype="f4", chunks=(2,))[:2] = 1
    f.create_dataset("none", shape=(0, 3), dtype="f4", chunks=(2, 2), maxshape=(None, 3))


def many(f):
    # The names take more than 512 KiB, so that in newer forms there are blocks of blocks.
    for i in range(2000):
        f.create_dataset(f"layers/layer_{i} " + "whose name is long " * 20, data=np.int32(i))


def read(d):
    named = d.attrs.get("dtype")
    kind = {None: d.dtype.name, b"bfloat16": "bfloat16"}.get(named, named)
    if h5py.check_string_dtype(d.dtype) or d.dtype.fields or (d.dtype.kind == "V" and named is None) or d.dtype.kind == "c":
        return [None, d.shape, None]
    value = np.zeros(0) if d.shape is None else d[()]  # without a dataspace
    if d.dtype.kind != "V":
        value = value.astype(value.dtype.newbyteorder("<"))
    return [kind, [0] if d.shape is None else d.shape, base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()]


os.chdir(sys.argv[1])
said = {}
for name, fill, options in (
    ("kinds", kinds, {}),
    ("kinds-1.8", kinds, {"libver": "v108"}),
    ("kinds-latest", kinds, {"libver": "latest"}),
    ("links", links, {}),
    ("links-ordered", links, {"track_order": True}),
    ("links-1.8", links, {"libver": "v108"}),
    ("links-latest", links, {"libver": "latest", "track_order": True}),
    ("chunks", chunks, {}),
    ("chunks-1.8", chunks, {"libver": "v108"}),
    ("many", many, {}),
    ("many-1.8", many, {"libver": "v108"}),
    ("many-latest", many, {"libver": "latest", "track_order": True}),
):
    h5py.get_config().track_order = options.get("track_order", False)
    with h5py.File(name + ".h5", "w", **options) as f:
        fill(f)
    with h5py.File(name + ".h5") as f:
        said[name + ".h5"] = found = {}
        f.visititems(lambda at, d: found.update({at: read(d)}) if isinstance(d, h5py.Dataset) else None)
json.dump(said, sys.stdout)
