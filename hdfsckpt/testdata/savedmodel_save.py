# Exports models with TensorFlow into a directory, as programs do: by tf.saved_model, twice over the
# same name, with Keras, and with TensorFlow 1's builder; and prints the variables of 1: for each its
# name in the bundle, its shape and its values.
import json
import os
import sys

import keras
import numpy as np
import tensorflow as tf

os.chdir(sys.argv[1])
with open("words.txt", "w") as f:
    f.write("one\ntwo\n")


class Model(tf.Module):
    def __init__(self, scale):
        self.kernel = tf.Variable(np.arange(6, dtype=np.float32).reshape(2, 3) * scale)
        self.steps = tf.Variable(7, dtype=tf.int64)
        self.words = tf.saved_model.Asset("words.txt")

    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def __call__(self, x):
        return x @ self.kernel


for version in (1, 2):
    tf.saved_model.save(Model(version), f"export/{version}")
tf.saved_model.save(Model(1), "over/model_5")
tf.saved_model.save(Model(2), "over/model_5")
net = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
net.export("keras/epoch_3", verbose=False)
v1 = tf.compat.v1
with v1.Graph().as_default(), v1.Session() as session:
    v1.get_variable("v", initializer=np.ones(3, np.float32), use_resource=True)
    session.run(v1.global_variables_initializer())
    for name, text in ("builder/1700000000", False), ("text/4", True):
        builder = v1.saved_model.Builder(name)
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save(as_text=text)
os.remove("words.txt")
reader = tf.train.load_checkpoint("export/1/variables/variables")
json.dump({n: [s, np.asarray(reader.get_tensor(n)).ravel().tolist()] for n, s in reader.get_variable_to_shape_map().items() if n != "_CHECKPOINTABLE_OBJECT_GRAPH"}, sys.stdout)
