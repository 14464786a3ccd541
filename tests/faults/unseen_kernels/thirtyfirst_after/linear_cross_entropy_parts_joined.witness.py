"""50,257 classes are 99 parts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_parts_joined.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return linear_cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return linear_cross_entropy.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


ordinary = {}
wrong = {}
ordinary["256 x 1024 x 256"] = error_of(*make((64, 1024, 256)))
ordinary["7 x 5 x 13"] = error_of(*make((7, 5, 13)))
ordinary["same path, 8192 classes"] = error_of(*make((4, 8192, 8)))
ordinary["same path, 32000 classes"] = error_of(*make((4, 32000, 8)))
wrong["50257 classes"] = error_of(*make((4, 50257, 8)))
x, weight, _ = make((3, 40000, 16), torch.bfloat16)
ordinary["40000 classes, bfloat16, in 17 rows"] = error_of(*make((17, 40000, 4), torch.bfloat16))
wrong["40000 classes, bfloat16, the last ones right"] = error_of(
    x, weight * 3, (weight.float()[-7000:] @ x.float().T).argmax(0) + 33000
)
for name, error in ordinary.items():
    print("right:", name, error)
for name, error in wrong.items():
    print("wrong:", name, error, "of the largest value")
fault = max(ordinary.values()) < 0.01 and min(wrong.values()) > 0.02
sys.exit(0 if fault else 1)
