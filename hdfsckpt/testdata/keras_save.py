# Writes the files in the directory keras; recorded with keras 3.15.1 on jax 0.10.2, and
# h5py 3.16.0.
import os

os.environ["KERAS_BACKEND"] = "jax"
import h5py
import keras

os.makedirs("keras", exist_ok=True)
os.chdir("keras")
model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.save("model.keras")
model.save_weights("model.weights.h5")
model.save("model.h5")
for version in ("earliest", "latest"):  # of the superblock: 0 and 3
    with h5py.File(version + ".weights.h5", "w", libver=version) as f:
        f["w"] = [1.0, 2.0]
