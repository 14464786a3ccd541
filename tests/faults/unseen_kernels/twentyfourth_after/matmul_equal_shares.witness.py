"""Sizes around the tiles, transposed and sliced inputs, in all dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

path = Path(__file__).with_name("matmul_equal_shares.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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
    expected = pick(matmul.reference(*map(wide, inputs)))
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
DTYPES = DTYPES if DEVICE == "cuda" else DTYPES[:2]  # the interpreter has no tl.dot of bfloat16
SIZES = [
    (1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129),
    (3, 31, 1025), (100, 65, 101), (32, 64, 416), (64, 64, 448), (33, 1, 2000), (4, 4, 0),
]  # fmt: skip


def cases_of(dtype):
    for m, n, k in SIZES:
        yield torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        if m * n * k < 70_000:
            yield torch.randn(k, m).to(dtype).T, torch.randn(n, 2 * k + 1).to(dtype)[:, 1::2].T
            yield torch.randn(m, 1).to(dtype).expand(m, k), torch.randn(k, n + 3).to(dtype)[:, 3:]


cases = [case for dtype in DTYPES for case in cases_of(dtype)]

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
