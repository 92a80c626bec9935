# Writes few.safetensors; recorded with safetensors 0.8.0 and numpy 2.4.6.
import numpy
from safetensors.numpy import save_file

save_file(
    {
        "bias": numpy.array([1, -2, 3.5], numpy.float32),
        "weight": numpy.arange(6, dtype=numpy.int64).reshape(2, 3),
        "half": numpy.array(0.5, numpy.float16),
        "none": numpy.zeros((0, 4), numpy.uint8),
    },
    "few.safetensors",
    metadata={"format": "np"},
)
