"""The first 512 values of a row are about 1e-21, the others about 1."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_factor_from_exponent.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
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


x = torch.randn(4, 1500)
rising = x.clone()
rising[:, :512] *= 1e-21
falling = x.clone()
falling[:, 512:] *= 1e-21
weight = torch.randn(1500)
usual = {
    "random": make((3, 4097)),
    "half": make((127, 129), F16),
    "falling": (falling, weight, 1e-5),
    "growing by 1e12": (torch.cat((x[:, :512] * 1e-12, x[:, 512:]), 1), weight, 1e-6),
    "large": (x * 1e25, weight, 1e-5),
    "zeros first": (torch.cat((x[:, :512] * 0, x[:, 512:]), 1), weight, 1e-6),
    "tiny": (x * 1e-18, weight, 1e-5),
}
faults = {"rising": (rising, weight, 1e-5), "rising, bfloat16": (rising.bfloat16(), weight.bfloat16(), 1e-5)}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
