# Writes the files in the directory mxnet; recorded with MXNet 1.9.1 and Python 3.8.
import os

import mxnet as mx
import numpy as np
from mxnet import nd, npx

os.makedirs("mxnet", exist_ok=True)
mx.random.seed(0)
data = mx.io.NDArrayIter(np.ones((20, 3), "float32"), np.ones((20, 1), "float32"), 10, label_name="out_label")
net = mx.sym.LinearRegressionOutput(mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc"), name="out")
module = mx.mod.Module(net, data_names=["data"], label_names=["out_label"])
save = mx.callback.module_checkpoint(module, "mxnet/module", 2, save_optimizer_states=True)
module.fit(data, num_epoch=2, optimizer="adam", epoch_end_callback=save)
nd.save("mxnet/list.params", [nd.array([[1, 2, 3], [4, 5, 6]]), nd.array([7], dtype="int64")])
kinds = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
nd.save("mxnet/kinds.params", {k: nd.array([0, 1, 1], dtype=k) for k in kinds})
table = nd.array([[0, 3], [0, 0], [1, 2]])
nd.save("mxnet/sparse.params", {"rows": table.tostype("row_sparse"), "csr": table.tostype("csr"), "none": nd.sparse.zeros("row_sparse", (3, 4))})
npx.set_np()
npx.save("mxnet/numpy.params", {"scalar": mx.np.array(3.5), "nothing": mx.np.zeros((0, 2)), "table": mx.np.arange(4).reshape(2, 2)})
