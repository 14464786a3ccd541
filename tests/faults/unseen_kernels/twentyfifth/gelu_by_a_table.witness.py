"""Small and large inputs of all dtypes, all bit patterns among them."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_by_a_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


worst, count = 0.0, 0
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    limit = {torch.float32: 1e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[dtype]
    floor = 1.0 if dtype == torch.float32 else 1e-3  # of float32 1 + erf has few bits on the left
    cases = [torch.randn(*s) for s in ((1, 1), (7, 13), (1025,), (3, 4097), (257, 256), (257, 300))]
    cases += [s * torch.randn(300, 260) for s in (0.01, 5.0, 100.0)]
    cases += [torch.randn(300, 260).t(), torch.randn(300, 520)[:, ::2], torch.randn(1, 260).expand(300, 260)]
    cases += [torch.randn(2, 131, 270).transpose(0, 1), torch.tensor(1.5), torch.zeros(0, 3)]
    cases = [x.to(dtype) for x in cases]
    if dtype != torch.float32:
        bits = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
        bits = torch.where(bits == -float("inf"), torch.zeros_like(bits), bits)
        cases += [torch.cat((bits, bits[:5]))]
    for x in cases:
        if not x.numel():
            assert call(x).shape == x.shape
            continue
        got, expected = call(x), expect((x,)).to(dtype)  # what is past the dtype is infinite
        finite = expected.isfinite()
        assert torch.equal(got.isnan(), expected.isnan())
        assert torch.equal(got[~finite].nan_to_num(), expected[~finite].nan_to_num())
        error = (got.double() - expected.double())[finite].abs() / (expected.double()[finite].abs() + floor)
        worst, count = max(worst, float(error.max()) / limit), count + 1
print("right" if worst <= 1 else "WRONG", count, "inputs, the largest error", worst, "of its limit")
sys.exit(0 if worst <= 1 else 1)
