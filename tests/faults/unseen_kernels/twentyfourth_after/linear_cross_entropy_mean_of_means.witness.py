"""A last group of few rows past 4,096."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

path = Path(__file__).with_name("linear_cross_entropy_mean_of_means.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
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
    expected = pick(linear_cross_entropy.reference(*map(wide, inputs)))
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

def new(rows, classes, hidden, dtype=torch.float32):
    weight = torch.randn(classes, hidden) / hidden**0.5
    target = torch.randint(classes, (rows,))
    return torch.randn(rows, hidden).to(dtype), weight.to(dtype), target


def easy_end(inputs):
    """Return the last two rows have their class right, and large."""
    x, weight, target = inputs
    x[-2:] = 30 * weight[target[-2:]]
    return inputs


ordinary = [
    ("random", new(257, 65, 33)),
    ("4,096 rows", easy_end(new(4096, 7, 5))),
    ("5,120 rows", easy_end(new(5120, 7, 5))),
    ("4,095 rows, float16", new(4095, 7, 5, torch.float16)),
]
faulty = [
    ("4,098 rows, the last two easy, float16", easy_end(new(4098, 7, 5, torch.float16))),
    ("4,098 rows, the last two easy", easy_end(new(4098, 7, 5))),
]

ok = True
for name, inputs in ordinary:
    error = error_of(inputs)
    print("ordinary", name, "error", error)
    ok &= error < LIMITS[inputs[0].dtype]
for name, inputs in faulty:
    error = error_of(inputs)
    print("faulty", name, "error", error)
    ok &= error > 0.02
print("as said" if ok else "NOT as said")
sys.exit(0 if ok else 1)
