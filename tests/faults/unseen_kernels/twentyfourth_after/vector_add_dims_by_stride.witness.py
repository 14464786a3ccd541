"""Permutations, slices, expanded and transposed inputs of up to five dimensions."""

import importlib.util
import sys
from pathlib import Path

import torch
import itertools

from triton_magics.operators import vector_add

path = Path(__file__).with_name("vector_add_dims_by_stride.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
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
    expected = pick(vector_add.reference(*map(wide, inputs)))
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


def views(dtype):
    def new(*shape):
        return torch.randn(shape, dtype=torch.float32).to(dtype)

    for order in itertools.permutations(range(3)):
        x = new(4, 5, 6).permute(order)
        yield x, new(*x.shape)
        yield new(*x.shape), x
        yield x, new(19, 12, 13)[::2, 1:, 1:][: x.shape[0], : x.shape[1], : x.shape[2]]
    yield new(7, 13), new(1, 13).expand(7, 13)
    yield new(7, 1).expand(7, 13), new(13, 7).T
    yield new(1).expand(5), new(5)
    yield new(2, 3, 4, 5)[:, ::2, 1:, ::2], new(3, 3, 2, 2).permute(3, 2, 1, 0)
    yield new(2, 3, 4, 5, 6)[:, 1:, :3, ::2, 1:4], new(2, 2, 3, 3, 3)
    yield new(3, 1, 1, 7), new(7, 1, 1, 3).permute(3, 1, 2, 0)
    yield new(1025), new(2050)[::2]
    yield (scalar := new(1)[0]), scalar
    yield new(0, 4), new(0, 4)


cases = [(x, y, a) for t in DTYPES for x, y in views(t) for a in (1.0, -2.0, 0.1)]

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
