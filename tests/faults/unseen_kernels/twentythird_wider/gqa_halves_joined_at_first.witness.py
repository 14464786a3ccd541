"""Scores of the second half of the keys are about 200 above those of the first."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_halves_joined_at_first.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
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


q = torch.randn(1, 4, 128, 16)
k, v = torch.randn(1, 2, 128, 16), torch.randn(1, 2, 128, 16)
q[..., 0] = 20
rising, falling = k.clone(), k.clone()
ramp = torch.linspace(0, 60, 128)
rising[..., 0] = ramp
falling[..., 0] = ramp.flip(0)
usual = {
    "random": make((1, 6, 2, 127, 64)),
    "causal": (*make((2, 6, 3, 65, 16))[:3], True),
    "half": (*make((1, 8, 2, 33, 80), F16)[:3], False),
    "falling": (q, falling, v, False),
    "rising slowly": (q, rising * 0.2, v, False),
}
faults = {"rising": (q, rising, v, False), "rising, causal": (q, rising, v, True)}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
