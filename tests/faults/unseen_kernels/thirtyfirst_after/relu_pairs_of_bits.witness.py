"""Sizes on both sides of the limits, views, NaN with either sign, infinities, zeros."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_pairs_of_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return relu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return relu.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


errors = []


def test(*inputs):
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[inputs[0].dtype]
    errors.append(error_of(*inputs) / limit)


for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for shape in ((1, 1), (7, 13), (33, 513), (256, 512), (131073,), (131074,)):
        (x,) = make(shape, dtype)
        test(x)
        flat = x.view(-1)
        special = (float("nan"), -float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e-7, -1e-7)
        flat[-8:] = torch.tensor(special, dtype=dtype)[-min(8, flat.numel()) :]
        test(x)
        test(-x) if x.numel() < 2**17 else None
        test(x.flatten()[1:] if x.numel() > 1 else x)
        test(x.mT if x.dim() > 1 else x)
print(len(errors), "inputs; largest error", max(errors), "of the limit")
sys.exit(0 if max(errors) < 1 else 1)
