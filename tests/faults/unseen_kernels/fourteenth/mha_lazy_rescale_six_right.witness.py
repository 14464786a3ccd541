"""Rising and falling scores in all dtypes, shapes, both masks."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_rescale_six_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


ALLOWED = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}

def rising(dtype, step, seq=128, dim=16):
    q, k, v = torch.zeros(1, 2, seq, dim), 0.1 * torch.randn(1, 2, seq, dim), torch.randn(1, 2, seq, dim)
    q[..., 0] = dim**0.5
    k[..., 0] = step * (torch.arange(seq) // 32)
    return q.to(dtype), k.to(dtype), v.to(dtype)


cases = [(*rising(torch.float16, 14.0, seq=64),)]
for dtype in ALLOWED:
    for step in (3.0, 5.9, 6.1, 14.0, 60.0, -14.0):
        cases += [(*rising(dtype, step), True), (*rising(dtype, step), False)]
    for shape in ((1, 1, 1, 64), (1, 1, 7, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 129, 128)):
        cases += [(*(torch.randn(shape).to(dtype) for _ in range(3)), causal) for causal in (False, True)]
cases += [(*(10.0 * torch.randn(1, 2, 70, 16) for _ in range(3)), True)]
cases += [(*(torch.randn(1, 40, 2, 16).transpose(1, 2) for _ in range(3)), True)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtype = next(x.dtype for x in inputs if torch.is_tensor(x) and x.dtype in ALLOWED)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / ALLOWED[dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
