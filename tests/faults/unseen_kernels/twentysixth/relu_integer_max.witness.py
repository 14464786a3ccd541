"""NaN with a sign bit: 0 / 0 on x86 makes such ones, and so does -NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_integer_max.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x = torch.randn(7, 300)
x[2, 3:6] = torch.tensor([float("nan"), float("inf"), -float("inf")])
x[3, 0] = -0.0
ordinary = max(difference(call(y), expect((y,))) for y in (x, x.half(), x.bfloat16(), x.t()))

x[4, 7] = -x[2, 3]
error = difference(call(x), expect((x,)))
halves = max(difference(call(y), expect((y,))) for y in (x.half(), x.bfloat16()))
print("float16 and bfloat16, with the same NaN:", halves)
print("the wrong element:", float(call(x)[4, 7]), "of", float(x[4, 7]))

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.05
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
