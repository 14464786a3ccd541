"""Halves in both orders, slices, transposes and plain tensors."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_signed_distance_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (100, 1))]
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((33, 200), (2, 5, 66), (7, 2)):
        a, b = torch.randn(shape).to(dtype).chunk(2, dim=-1)
        cases += [(a, b), (b, a), (a, a)]
h = torch.randn(4, 40, 66)
cases += [(h[:, :20, :33], h[:, 20:, 33:]), (h[:, ::2, :20], h[:, 1::2, 30:50]), (h[..., ::2], h[..., 1::2])]
cases += [(h[0, :, :40].t(), h[1, :, :40].t()), (h[0, 0].expand(5, 66), h[0, 1].expand(5, 66)), (30 * h, h)]
cases += [(h[:2].transpose(0, 1), h[2:].transpose(0, 1)), (h[0, 0, 0], h[0, 0, 1])]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
