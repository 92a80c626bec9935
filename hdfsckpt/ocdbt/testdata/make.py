# Writes the stores in this directory; recorded with tensorstore 0.1.86. Their keys are
# "layers/N/weights" for N from 0 to 79 with the value N, N times over, in digits.
import os

import tensorstore as ts

context = ts.Context()
for name, compression in {"plain": None, "compressed": {"id": "zstd"}}.items():
    where = os.path.abspath(name)
    part = {"driver": "ocdbt", "base": "file://" + where + "/part/", "config": {"max_inline_value_bytes": 20, "max_decoded_node_bytes": 400, "compression": compression}}
    whole = dict(part, base="file://" + where + "/")
    kv = ts.KvStore.open(part, context=context).result()
    with ts.Transaction() as txn:
        for n in range(80):
            kv.with_transaction(txn).write("layers/%d/weights" % n, str(n) * n).result()
    # The whole names what lies in the part, as Orbax puts together what processes wrote.
    with ts.Transaction(atomic=True) as txn:
        kv.experimental_copy_range_to(ts.KvStore.open(whole, context=context).result().with_transaction(txn)).result()
