"""Logits that rise slowly along the row."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

path = Path(__file__).with_name("cross_entropy_rise_from_last_block.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
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
    expected = pick(cross_entropy.reference(*map(wide, inputs)))
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

def target(rows, classes):
    return torch.randint(classes, (rows,))


def rising(rows, classes, top):
    return torch.linspace(0, top, classes) + torch.randn(rows, classes)


ordinary = [
    ("random", (torch.randn(7, 4097), target(7, 4097))),
    ("large", (100 * torch.randn(7, 4097), target(7, 4097))),
    ("one jump", (torch.randn(7, 2000) + 300 * (torch.arange(2000) > 999), target(7, 2000))),
    ("falling", (rising(7, 4096, 120).flip(1), target(7, 4096))),
    ("float16", (torch.randn(129, 1000).half(), target(129, 1000))),
]
faulty = [
    ("rising to 120", (rising(7, 4096, 120), target(7, 4096))),
    ("rising to 100, float16", (rising(7, 3000, 100).half(), target(7, 3000))),
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
