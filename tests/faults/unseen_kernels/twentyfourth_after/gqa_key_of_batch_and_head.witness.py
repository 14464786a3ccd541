"""Two batches with kv_heads = group + 1."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

path = Path(__file__).with_name("gqa_key_of_batch_and_head.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
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
    expected = pick(gqa.reference(*map(wide, inputs)))
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

def new(batch, heads, kv_heads, seq, dim, is_causal, dtype=torch.float32):
    q, k, v = (torch.randn(batch, n, seq, dim).to(dtype) for n in (heads, kv_heads, kv_heads))
    return q, k, v, is_causal


ordinary = [
    ("8 and 2 heads", new(3, 8, 2, 33, 80, True)),
    ("12 and 2 heads", new(3, 12, 2, 33, 64, False)),
    ("one head of keys", new(5, 3, 1, 17, 64, True)),
    ("float16", new(4, 6, 6, 16, 16, False, torch.float16)),
    ("one batch", new(1, 6, 3, 33, 64, True)),
    ("longer", new(2, 6, 3, 65, 96, True)),
]
faulty = [
    ("6 and 3 heads", new(2, 6, 3, 33, 64, True)),
    ("2 and 2 heads", new(3, 2, 2, 16, 32, False)),
    ("12 and 4 heads, float16", new(2, 12, 4, 20, 32, False, torch.float16)),
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
