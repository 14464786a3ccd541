"""Shapes, views, dtypes, scales, outliers and means."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_row_pivot_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


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
        m = s[-1]
        cases += [(torch.randn(s).to(t), torch.randn(m).to(t), torch.randn(m).to(t))]


def plain(x, eps=1e-5):
    return (x, torch.ones(x.shape[-1]), torch.zeros(x.shape[-1]), eps)


x = torch.randn(8, 256)
x[0, 0] = 1e5
cases += [plain(x)]
for place in (0, 100, 255):
    x = torch.randn(8, 256)
    x[2, place] = float("nan")
    cases += [plain(x)]
for scale in (1e-4, 1e-2, 10.0, 1e4):
    cases += [plain(scale * torch.randn(9, 300)), plain(scale * torch.randn(9, 300), 1e-2)]
# Values on a grid of 1/256: a float32 mean of 1000 leaves no rounding in them.
grid = (torch.randn(8, 256) * 256).round() / 256
cases += [plain(grid + 1000.0), plain(grid + 1000.0 * torch.arange(8)[:, None])]
cases += [plain(torch.randn(64, 33).t()), plain(torch.randn(8, 1, 40).expand(8, 3, 40))]
cases += [(torch.randn(8, 40), torch.randn(80)[::2], torch.randn(1).expand(40))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / half)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
