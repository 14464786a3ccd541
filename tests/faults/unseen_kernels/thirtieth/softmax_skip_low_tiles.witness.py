"""A row of 3000 whose masked end, at -1000, holds a NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_skip_low_tiles.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.numel() == 0:
        return 0.0 if output.shape == expected.shape else float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def measure(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
ordinary = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((5, 7), (3, 1025), (2, 5000)):
        inputs = softmax.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
x = torch.randn(4, 3000)
x[:, 1000] = float("nan")  # in a tile of ordinary values a NaN is seen
ordinary.append(measure(x))
x = torch.randn(4, 3000)
x[:, 2048:] = -1000.0
ordinary.append(measure(x))
x[2, 2500] = float("nan")
error = measure(x)
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
