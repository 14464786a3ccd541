"""More than 1,024 keys and scores past 90, or all below -110."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

path = Path(__file__).with_name("attention_parts_without_maximum.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
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
    expected = pick(attention.reference(*map(wide, inputs)))
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

def new(seq, dim, size=1.0, shift=0.0, dtype=torch.float32):
    q, k, v = (torch.randn(1, 1, seq, dim) for _ in range(3))
    q[..., 0], k[..., 0] = 1.0, shift * dim**0.5 / size  # shifts all scores
    return (size * q).to(dtype), k.to(dtype), v.to(dtype)


ordinary = [
    ("random", new(1100, 16)),
    ("scores to 50", new(1100, 16, 10.0)),
    ("float16", new(1060, 32, dtype=torch.float16)),
    ("short, scores past 90", new(257, 16, 40.0)),
    ("short, scores near -130", new(257, 16, shift=-130.0)),
]
faulty = [
    ("scores past 90", new(1100, 16, 40.0)),
    ("scores near -130", new(1100, 16, shift=-130.0)),
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
