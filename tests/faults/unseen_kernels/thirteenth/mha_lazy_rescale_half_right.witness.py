"""Later keys ahead by 2^2 to 2^40, causal or not, shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_rescale_half_right.py"))
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


cases = []
for ahead in (1.0, 3.0, 5.0, 8.0, 10.0, 12.0, 20.0, -10.0, -30.0):
    q, k, v = (torch.randn(1, 2, 70, 16) for _ in range(3))
    q[..., 0] = 5.0
    k[..., 0] = 0.0
    k[..., 1:] *= 0.2
    k[:, :, 50:, 0] = ahead
    cases += [(q.half(), k.half(), v.half()), (q.bfloat16(), k.bfloat16(), v.bfloat16(), True), (q, k, v, True)]
for shape in ((1, 1, 1, 64), (1, 1, 7, 64), (2, 3, 65, 32), (1, 2, 33, 80), (1, 1, 100, 16)):
    q, k, v = (torch.randn(shape) for _ in range(3))
    cases += [(q, k, v), (q, k.transpose(2, 3).contiguous().transpose(2, 3), v[:, :, :1].expand_as(v), True)]
    cases += [(q.half(), k.half(), v.half(), True), (q.bfloat16(), k.bfloat16(), v.bfloat16())]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
