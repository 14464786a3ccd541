"""Large means, trends, steps between blocks, outliers, infinities."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

path = Path(__file__).with_name("layer_norm_first_block_shift.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
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
    expected = pick(layer_norm.reference(*map(wide, inputs)))
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


def rows(dtype):
    for m in (1, 13, 129, 1023, 1025, 4097):
        x = torch.randn(3, m)
        steps = torch.arange(m)
        yield x
        yield x + 300
        yield 3 * x - 0.05 * steps
        yield x + 200.0 * (steps >= min(1024, m // 2))
        yield torch.cat([x[:, :1] + 500, x[:, 1:]], dim=1)
        yield torch.cat([torch.zeros(3, m // 2), x[:, m // 2 :]], dim=1)
        yield torch.full((3, m), 0.5)
        broken = x.clone()
        broken[1, m // 2] = float("inf")
        broken[2, m - 1] = float("nan")
        yield broken
    yield torch.randn(2, 3, 129)
    yield torch.randn(64, 33).T


def cases_of(dtype):
    for x in rows(dtype):
        m = x.shape[-1]
        yield x.to(dtype), torch.randn(m).to(dtype), torch.randn(m).to(dtype), 1e-5


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
