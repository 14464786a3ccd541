"""The first two heads of eight: x[:, :2] in four dimensions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rms_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rms_norm_evenly_spaced_rows.py"))
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
    if output.numel() == 0:
        return 0.0 if output.shape == expected.shape else float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def measure(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMIT = 0.02
ordinary = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((5, 7), (2, 3, 129), (2, 3, 5, 70)):
        inputs = rms_norm.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
w = torch.randn(65)
big = torch.randn(6, 8, 10, 65)
for x in (big[0, 0, ::2], big[0, 2:5], big[0, :, :3], big[..., 2], big[:, :, :3], big[:3]):
    ordinary.append(measure(x, torch.randn(x.shape[-1]), 1e-6))
error = measure(big[:, :2], w, 1e-6)
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
