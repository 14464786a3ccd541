"""Halves and thirds in every order, slices of them, rows apart, three dimensions, overlaps, other strides, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_parts_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = [(torch.randn(s), torch.randn(s)) for s in ((1, 1), (7, 13), (1025,), (2, 3, 129), (3, 4097), (100, 1))]
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((16, 600), (2, 3, 1200), (4, 6), (2, 2, 3, 36), (1, 60), (5, 7200)):
        whole = torch.randn(shape).to(dtype)
        for parts in (whole.chunk(2, -1), whole.chunk(3, -1), whole[::2].chunk(3, -1), whole[..., 1:-1].chunk(2, -1)):
            cases += [(parts[0], parts[1]), (parts[-1], parts[0]), (parts[1], parts[1])]
        cases += [(whole[..., ::2], whole[..., 1::2]), (whole[..., :-1], whole[..., 1:])]
        a, b = whole.chunk(2, -1)
        cases += [(a, b.contiguous()), (a.transpose(0, -1), b.transpose(0, -1)), (a, torch.randn_like(whole)[..., : a.shape[-1]])]
    whole = torch.randn(4, 5, 60).to(dtype)
    a, b = whole.chunk(2, -1)
    cases += [(a[:, 1:3], b[:, 1:3]), (a[:, ::2], b[:, ::2]), (a[:, :1].expand(4, 5, 30), b[:, :1].expand(4, 5, 30))]
    cases += [(a.transpose(0, 1), b.transpose(0, 1)), (whole[:2, :, :30], whole[2:, :, :30]), tuple(torch.randn(2, 8, 9).to(dtype).unbind(0))]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed[inputs[0].dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
