"""One to 33 heads; contiguous, interleaved, parts of a projection, slices, other strides, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_head_groups_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rope.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for batch, heads, seq, half in (
    (1, 1, 1, 1), (1, 1, 7, 13), (2, 3, 65, 16), (1, 4, 33, 40), (2, 5, 33, 8), (3, 7, 10, 5), (2, 12, 33, 16), (1, 33, 9, 4),
):
    angles = torch.arange(seq)[:, None] * rope.BASE ** (-torch.arange(half) / half)
    cos, sin = angles.cos(), angles.sin()
    dim = 2 * half
    views = [torch.randn(batch, heads, seq, dim), torch.randn(batch, seq, heads, dim).transpose(1, 2)]
    views += [torch.randn(batch, seq, 3, heads, dim)[:, :, i].transpose(1, 2) for i in range(3)]
    views += [torch.randn(batch, seq, heads, 3, dim)[:, :, :, 1].transpose(1, 2)]
    views += [torch.randn(2 * batch, heads + 2, seq + 3, dim)[::2, 1:-1, 2:-1]]
    views += [torch.randn(batch, 2 * heads, seq, dim)[:, ::2], torch.randn(batch, heads, dim, seq).transpose(2, 3)]
    views += [torch.randn(batch, 1, seq, dim).expand(batch, heads, seq, dim), torch.randn(batch, heads, seq, 2 * dim)[..., ::2]]
    cases += [(x, cos, sin) for x in views]
    for dtype in (torch.float16, torch.bfloat16):
        cases += [(views[i].to(dtype), cos.to(dtype), sin.to(dtype)) for i in (0, 1, 4)]
    cases += [(views[0], cos.t().contiguous().t(), torch.cat([sin, sin], -1)[:, :half])]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed[inputs[0].dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
