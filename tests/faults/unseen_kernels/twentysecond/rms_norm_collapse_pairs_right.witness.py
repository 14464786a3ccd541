"""Shapes, dtypes and slices of up to five dimensions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_collapse_pairs_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rms_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return rms_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

shapes = ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (64, 128), (33, 257), (100, 1))
cases = []
for s in shapes:
    for t in (torch.float32, torch.float16, torch.bfloat16):
        cases += [(torch.randn(s).to(t), torch.randn(s[-1]).to(t))]
fused = torch.randn(2, 12, 8, 64)
deep = torch.randn(2, 3, 4, 5, 16)
views = [fused[:, :4], fused[:, 4:8], fused[:, :, :4], fused[..., :32], fused[..., ::2], fused[1:], fused[:, ::2]]
views += [fused.transpose(1, 2), fused[:1].expand(3, 12, 8, 64), fused[:, :1].expand(2, 5, 8, 64), fused[0], fused[0, :, 0]]
views += [fused[:, 0], fused[:, :, :1], fused[..., :1], fused[:, :, 0, :1], fused[0, 0, :, 3]]
views += [deep[:, :2], deep[:, :, :2], deep[:, :, :, :2], deep[::2], deep.permute(1, 0, 2, 3, 4), torch.randn(64, 33).t()]
cases += [(v, torch.randn(v.shape[-1])) for v in views]
cases += [(torch.randn(8, 40), torch.randn(80)[::2]), (1e-3 * torch.randn(8, 40), torch.randn(1).expand(40), 1e-6)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / half)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
