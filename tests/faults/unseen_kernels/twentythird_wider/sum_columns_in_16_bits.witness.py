"""Rows of 40,000 values with a step of 2."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_columns_in_16_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    floating = torch.is_tensor(x) and x.is_floating_point()
    return x.double() if floating else x


def difference(inputs):
    expected = op.reference(*map(wide, inputs)).double()
    output = call(*inputs)
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-30)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=F32):
    return op.make_inputs(shape, dtype, cpu, g)


buffer = torch.randn(2, 80_000) + torch.linspace(0, 1, 80_000)
usual = {
    "random": make((257, 1023)),
    "long": make((2, 70_001)),
    "65,536": make((2, 65_536), F16),
    "step 2": (buffer[:, :60_000:2],),
    "step 3": (buffer[:, :60_000:3],),
    "expanded": (torch.randn(3, 1).expand(3, 50_000),),
    "transposed": (torch.randn(1023, 5).T,),
    "step 2, 70,000": (torch.rand(1, 140_000)[:, ::2],),
}
faults = {
    "step 2, 40,000": (buffer[:, ::2],),
    "transposed, step 5": (torch.linspace(0, 1, 20_000)[:, None].repeat(1, 5).T,),
}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
