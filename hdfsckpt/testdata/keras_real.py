# Saves a model of mixed types with Keras in each form into a directory, before a step of
# training and after it, and prints what h5py reads in the files: for each dataset its type, its
# shape, and its bytes in base64, little endian.
import base64
import io
import json
import os
import sys
import zipfile

os.environ["KERAS_BACKEND"] = "tensorflow"
import h5py
import keras
import numpy as np

os.chdir(sys.argv[1])
keras.utils.set_random_seed(7)
layers = keras.layers
model = keras.Sequential(
    [layers.Input((4,)), layers.Dense(8), layers.BatchNormalization(), layers.Dense(3, dtype="bfloat16"), layers.Dropout(0.5)]
    + [layers.Dense(2, dtype="float16")]
    + [layers.Dense(2, dtype="float64") for _ in range(12)]
)
model.compile("adam", "mse")
model.train_on_batch(np.ones((8, 4)), np.ones((8, 2)))  # makes the optimizer's variables
for step in (1, 2):
    model.save(f"model_{step}.keras")
    model.save_weights(f"model_{step}.weights.h5")
    model.save(f"legacy_{step}.h5")
    model.train_on_batch(np.ones((8, 4)), np.ones((8, 2)))
model.save_weights("cut.weights.json", max_shard_size=1e-6)
with zipfile.ZipFile("model_1.keras") as stored, zipfile.ZipFile("packed_3.keras", "w", zipfile.ZIP_DEFLATED) as packed:
    for name in stored.namelist():
        packed.writestr(name, stored.read(name))


def read(d):
    kind = d.attrs.get("dtype", d.dtype.name)
    value = np.ascontiguousarray(d[()])
    return [kind if d.dtype.kind != "V" or "dtype" in d.attrs else None, d.shape, base64.b64encode(value.tobytes()).decode()]


def datasets(source):
    found = {}
    with h5py.File(source) as f:
        f.visititems(lambda at, d: found.update({at: read(d)}) if isinstance(d, h5py.Dataset) else None)
    return found


said = {}
for name in sorted(os.listdir(".")):
    if name.endswith(".keras"):
        with zipfile.ZipFile(name) as archive:
            said[name] = datasets(io.BytesIO(archive.read("model.weights.h5")))
    elif name.endswith(".h5"):
        said[name] = datasets(name)
json.dump(said, sys.stdout)
