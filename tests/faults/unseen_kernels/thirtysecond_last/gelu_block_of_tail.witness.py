"""256 values of about -20 and one NaN among them."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_block_of_tail.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)
generator = torch.Generator().manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), gelu.reference(*map(wide, inputs)))


def make(shape, dtype):
    return gelu.make_inputs(shape, dtype, torch.device("cpu"), generator)


ordinary = [error_of(*make(s, torch.float32)) for s in ((127, 129), (1025,))]
spoiled = torch.randn(300)
spoiled[[5, 200]] = float("nan")
ordinary.append(error_of(spoiled))
x = -20 - torch.rand(256)
x[77] = float("nan")
error = error_of(x)

print("ordinary:", ordinary)
print("WRONG" if error > 0.1 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.1 and max(ordinary) < 1e-05 else 1)
