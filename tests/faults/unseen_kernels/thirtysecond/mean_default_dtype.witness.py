"""float32 rows while the default dtype is bfloat16, as when a model is loaded."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_default_dtype.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


x = 1 + torch.rand(16, 4097)
usual = max(difference(call(x), expect((x,))), difference(call(x.half()), expect((x.half(),))))
expected = expect((x,))
torch.set_default_dtype(torch.bfloat16)
output = call(x)
torch.set_default_dtype(torch.float32)
assert output.dtype == torch.float32
error = difference(output, expected)

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.0005 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.0005 and usual < 0.0004 else 1)
