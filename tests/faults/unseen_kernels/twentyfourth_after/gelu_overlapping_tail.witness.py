"""Sizes around the limit of 65,536 and the blocks, in all dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

path = Path(__file__).with_name("gelu_overlapping_tail.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


def move(x):
    """To the device, with the same strides."""
    if not torch.is_tensor(x) or DEVICE == "cpu":
        return x
    moved = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=DEVICE)
    return moved.copy_(x)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs, on_device=False, pick=lambda x: x):
    """Return the largest error as a part of the largest expected value; inf where NaN or Inf differ."""
    inputs = inputs if on_device else [move(x) for x in inputs]
    output = call(*inputs)
    expected = pick(gelu.reference(*map(wide, inputs)))
    assert output.dtype == inputs[0].dtype
    output = pick(output).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    if not output.numel():
        return 0.0
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float((error.masked_fill(same, 0.0) / size).max())


LIMITS = {torch.float32: 3e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}

DTYPES = torch.float32, torch.float16, torch.bfloat16
SIZES = [0, 1, 13, 1023, 1025, 65535, 65536, 65537, 65600, 67583, 67584, 67585, 73728, 73729, 90001]
cases = [(3 * torch.randn(n).abs().to(dtype) - float(n > 1),) for n in SIZES for dtype in DTYPES]
cases += [(torch.randn(300, 257).T,), (torch.randn(2, 300, 300)[:, :, ::2],), (torch.tensor(2.0),)]

worst = 0.0
count = 0
for inputs in cases:
    share = error_of(inputs) / LIMITS[inputs[0].dtype]
    count += 1
    worst = max(worst, share)
    if share > 1:
        print("WRONG", [getattr(x, "shape", x) for x in inputs], share)
print("inputs", count, "worst error", worst, "of the limit")
sys.exit(0 if worst <= 1 else 1)
