"""Shapes, views and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_collapsed_batches_right.py"))
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

views = [torch.randn(s) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (64, 128), (33, 257), (100, 1))]
packed = torch.randn(2, 5, 3, 4, 32)
views += [packed[:, :, 0], packed[:, :, 1].transpose(1, 2), packed[0], packed[:, 1:3, 2], packed]
views += [torch.randn(64, 33).t(), torch.randn(8, 200)[:, ::2], torch.randn(8, 1, 40).expand(8, 3, 40)]
views += [1e4 * torch.randn(8, 100), 1e-4 * torch.randn(8, 100), torch.zeros(4, 50)]
cases = [(x, torch.randn(x.shape[-1]), 1e-5) for x in views]
cases += [(x.half(), torch.randn(x.shape[-1]).half(), 1e-3) for x in views[6:12]]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    half = any(torch.is_tensor(x) and x.dtype == torch.float16 for x in inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / (4e-3 if half else 1e-5))
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
