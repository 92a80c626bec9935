"""Writes the fixtures with the real TensorFlow; run with tensorflow-cpu 2.21.

Beside each checkpoint stands a .json file with what TensorFlow itself reads
back from it: name -> dtype, shape, values.
"""
import json
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import ml_dtypes
import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
here = os.path.dirname(os.path.abspath(__file__))


def plain(a):
    a = np.asarray(a, dtype=object) if isinstance(a, bytes) else np.asarray(a)
    if a.dtype == object:
        return [x.hex() for x in a.ravel().tolist()]
    if np.iscomplexobj(a):
        return [[float(x.real), float(x.imag)] for x in a.ravel()]
    if a.dtype == np.bool_ or np.issubdtype(a.dtype, np.integer):
        return [int(x) for x in a.ravel()]
    return [repr(float(x)) for x in a.ravel()]


def describe(prefix):
    r = tf.train.load_checkpoint(prefix)
    out = {}
    for name, shape in r.get_variable_to_shape_map().items():
        dtype = r.get_variable_to_dtype_map()[name]
        out[name] = {"dtype": dtype.name, "shape": shape, "values": plain(r.get_tensor(name))}
    with open(prefix + ".json", "w") as f:
        json.dump(out, f, indent=0, sort_keys=True)


def dtypes():
    rng = np.random.default_rng(1)
    with tf.Graph().as_default(), v1.Session() as s:
        v = []
        for t in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
            x = np.array([[0, -1.5, 2.25], [0.0078125, -224, np.nan]])
            v.append(v1.Variable(tf.cast(tf.constant(x), t), name="f/" + t.name, use_resource=False))
        for t in (tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64):
            i = np.iinfo(t.as_numpy_dtype)
            v.append(v1.Variable(tf.constant(np.array([i.min, i.max, 7], t.as_numpy_dtype)), name="i/" + t.name))
        v.append(v1.Variable(tf.constant([True, False, True]), name="bool"))
        v.append(v1.Variable(tf.constant([1 + 2j, -3.5j], tf.complex64), name="complex64"))
        v.append(v1.Variable(tf.constant([1 + 2j, -3.5j], tf.complex128), name="complex128"))
        v.append(v1.Variable(np.float32(3.25), name="scalar"))
        v.append(v1.Variable(np.zeros((0, 4), np.float32), name="nothing"))
        v.append(v1.Variable(rng.standard_normal((3, 1, 5)).astype(np.float32), name="deep/er/name_1"))
        v.append(v1.Variable(tf.constant([b"", b"one", b"\x00\xff" * 100, "größe".encode()]), name="strings"))
        v.append(v1.Variable(tf.constant(b"scalar string"), name="string"))
        s.run(v1.global_variables_initializer())
        v1.train.Saver(v).save(s, os.path.join(here, "dtypes.ckpt"), global_step=7, write_meta_graph=False, write_state=False)
    describe(os.path.join(here, "dtypes.ckpt-7"))


def sharded():
    # Shards are by device: three virtual CPUs serve as well as three hosts.
    config = v1.ConfigProto(device_count={"CPU": 3})
    with tf.Graph().as_default(), v1.Session(config=config) as s:
        for i in range(3):
            with tf.device("/cpu:%d" % i):
                v1.get_variable("v%d" % i, initializer=np.arange(10 * (i + 1), dtype=np.float32), use_resource=True)
        with v1.variable_scope("p", partitioner=v1.fixed_size_partitioner(3)):
            rows = v1.get_variable("rows", [8, 10], tf.int32, initializer=v1.zeros_initializer())
        with v1.variable_scope("p", partitioner=v1.fixed_size_partitioner(2, axis=1)):
            columns = v1.get_variable("columns", [1, 300], tf.float64, initializer=v1.zeros_initializer())
        s.run(v1.global_variables_initializer())
        for var, axis in ((rows, 0), (columns, 1)):
            whole = np.arange(np.prod(var.shape.as_list()), dtype=var.dtype.as_numpy_dtype).reshape(var.shape.as_list())
            at = 0
            for part in var:
                n = part.shape.as_list()[axis]
                s.run(part.assign(whole[at:at + n] if axis == 0 else whole[:, at:at + n]))
                at += n
        v1.train.Saver(sharded=True).save(s, os.path.join(here, "sharded.ckpt"), global_step=1200, write_meta_graph=False, write_state=False)
    describe(os.path.join(here, "sharded.ckpt-1200"))


def objects():
    net = tf.Module()
    net.w = [tf.Variable(tf.ones((4, 2)) * i) for i in range(3)]
    net.step = tf.Variable(24, dtype=tf.int64)
    tf.train.Checkpoint(net=net).write(os.path.join(here, "objects-24"))
    describe(os.path.join(here, "objects-24"))


def many():
    """An index of several blocks (TensorFlow's are of 256 KiB)."""
    with tf.Graph().as_default(), v1.Session() as s:
        for i in range(2500):
            v1.get_variable(("layer_%04d/" % i) + "x" * 120, initializer=np.int32(i))
        s.run(v1.global_variables_initializer())
        v1.train.Saver().save(s, os.path.join(here, "many.ckpt"), write_meta_graph=False, write_state=False)


def rare():
    """Kinds that variables seldom have, saved by the operation itself."""
    small = np.array([-1.5, 0, 0.25, 8], np.float32)
    tensors = {}
    for name in ("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"):
        tensors[name] = tf.constant(small.astype(getattr(ml_dtypes, name)))
    for name, values in (("int4", [-8, -1, 0, 7]), ("uint4", [0, 1, 9, 15])):
        tensors[name] = tf.constant(np.array(values).astype(getattr(ml_dtypes, name)))
    for t, bits in ((tf.qint8, tf.int8), (tf.quint8, tf.uint8), (tf.qint16, tf.int16), (tf.quint16, tf.uint16), (tf.qint32, tf.int32)):
        i = np.iinfo(bits.as_numpy_dtype)
        tensors[t.name] = tf.bitcast(tf.constant([i.min, i.max, 5], bits), t)
    tensors["variant"] = tf.stack([
        tf.raw_ops.TensorListFromTensor(tensor=tf.range(5.0 * (n + 1)), element_shape=tf.constant([], tf.int32)) for n in range(3)])
    tensors["variant/scalar"] = tf.raw_ops.TensorListFromTensor(tensor=tf.ones([2, 40]), element_shape=tf.constant([40]))
    tensors["empty strings"] = tf.constant([], tf.string)
    tensors["long strings"] = tf.constant([b"x" * n for n in (0, 127, 128, 700)])
    prefix = os.path.join(here, "rare.ckpt-3")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=list(tensors), shape_and_slices=[""] * len(tensors), tensors=list(tensors.values()))
    out = {}
    for name, x in tensors.items():
        (back,) = tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[x.dtype])
        out[name] = {"dtype": x.dtype.name, "shape": back.shape.as_list()}
        if x.dtype.is_quantized:
            back = tf.bitcast(back, {1: tf.int8, 2: tf.int16, 4: tf.int32}[x.dtype.size] if x.dtype in (tf.qint8, tf.qint16, tf.qint32) else {1: tf.uint8, 2: tf.uint16}[x.dtype.size])
        if x.dtype != tf.variant:
            values = back.numpy()
            if x.dtype.name in ("int4", "uint4"):
                values = values.astype(np.int32)
            out[name]["values"] = plain(values)
    with open(prefix + ".json", "w") as f:
        json.dump(out, f, indent=0, sort_keys=True)


for f in (dtypes, sharded, objects, many, rare):
    if len(sys.argv) < 2 or f.__name__ in sys.argv[1:]:
        f()
