"""Rows with trends, steps, offsets, plateaus; all lengths of the last block."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_from_both_ends.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
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


cases = []
for m in (1, 2, 13, 129, 255, 256, 257, 511, 512, 1000, 1023, 1025):
    for dtype in (F32, F16, BF16):
        x, weight, bias, eps = make((3, m), dtype)
        ramp = torch.linspace(-3, 40, m).to(dtype)
        step = torch.where(torch.arange(m) < m // 2, 0.0, 50.0).to(dtype)
        cases.append((f"random {m}", (x, weight, bias, eps)))
        cases.append((f"rising {m}", (x + ramp, weight, bias, eps)))
        cases.append((f"falling {m}", (x - ramp, weight, bias, eps)))
        cases.append((f"step {m}", (x + step, weight, bias, eps)))
cases.append(("expanded", (torch.randn(4, 1).expand(4, 700), torch.ones(700), torch.randn(700), 1e-3)))

worst = 0.0
for i, (text, inputs) in enumerate(cases):
    error = difference(inputs)
    bound = 1e-5 if inputs[-1 if op.__name__.endswith("fp8_matmul") else 0].dtype == F32 else 0.01
    print(i, text, error)
    assert error < bound, text
    worst = max(worst, error)
print("all", len(cases), "agree, worst", worst)
sys.exit(0)
