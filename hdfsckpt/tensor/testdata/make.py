"""Writes narrow.json: all values of the narrow kinds of numbers, as the
package ml_dtypes (which TensorFlow brings) reads them. float16 and bfloat16
are thinned out."""
import json
import os

import ml_dtypes
import numpy as np

out = {}
for name in ("float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz"):
    out[name] = [repr(float(x)) for x in np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, name))]
for name, dtype in (("float16", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
    out[name] = [repr(float(x)) for x in np.arange(0, 65536, 257, dtype=np.uint16).view(dtype)]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "narrow.json"), "w") as f:
    json.dump(out, f, indent=0)
