"""Two rows of 20,000; in one of them 8192 values are -inf, as masked logits are."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_split_chunk_max.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return softmax.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
ordinary["256 x 256"] = error_of(*make((256, 256)))
ordinary["half, 1024 columns"] = error_of(*make((8, 1024), torch.float16))
ordinary["same path, 2 x 20000"] = error_of(*make((2, 20000)))
(x,) = make((2, 20000))
x[:, ::3] = -float("inf")
ordinary["same path, some -inf"] = error_of(x)
x[1, 4000:12500] = -float("inf")
wrong["a chunk of -inf"] = error_of(x)
(x,) = make((40, 20000))
x[1, 4000:12500] = -float("inf")
ordinary["the same in many rows"] = error_of(x)
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
