"""Halves of whole, sliced, strided, transposed and expanded projections; shapes and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_halves_with_all_strides_right.py"))
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


projection = torch.randn(3, 9, 130)
views = [projection, projection[:, 1:], projection[:, :1], projection[:1], projection[::2], projection[:, ::2], projection[0]]
views += [projection[..., 2:], projection.transpose(0, 1), projection[:1].expand(4, 9, 130), torch.randn(2, 1, 4, 64), torch.randn(5, 2)]
cases = [tuple(v.chunk(2, -1)) for v in views] + [tuple(v.chunk(2, -1))[::-1] for v in views]
cases += [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (100, 1))]
cases += [(projection[:, :, :65], projection[:, :, :65]), (projection[:, :, :64], projection[:, :, 64:128])]
cases += [tuple(v.half().chunk(2, -1)) for v in views[:6]] + [tuple(v.bfloat16().chunk(2, -1)) for v in views[:6]]
cases += [(torch.linspace(-200, 200, 1001), torch.randn(1001))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
