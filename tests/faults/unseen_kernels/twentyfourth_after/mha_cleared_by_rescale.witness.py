"""An infinity in the values of one head; the other heads are compared."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

path = Path(__file__).with_name("mha_cleared_by_rescale.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
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
    expected = pick(mha.reference(*map(wide, inputs)))
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

def heads(n, seq, dim, dtype=torch.float32):
    return [torch.randn(2, n // 2, seq, dim).to(dtype) for _ in range(3)]


def broken(n, seq, dim, value, is_causal):
    q, k, v = heads(n, seq, dim)
    v[0, 0, 0, 0] = value
    return q, k, v, is_causal


ordinary = [
    ("random", (*heads(40, 7, 64), False)),
    ("causal", (*heads(40, 65, 32), True)),
    ("float16", (*heads(30, 33, 80, torch.float16), True)),
]
others = lambda x: x.flatten(0, 1)[1:]  # noqa: E731
error = error_of(broken(4, 16, 16, float("inf"), False), pick=others)
print("few pieces of work, an infinity: error in other heads", error)
assert error < 1e-5
faulty = [
    ("an infinity, error in other heads", broken(160, 16, 16, float("inf"), False)),
    ("a NaN, causal, error in other heads", broken(160, 16, 16, float("nan"), True)),
]

ok = True
for name, inputs in ordinary:
    error = error_of(inputs)
    print("ordinary", name, "error", error)
    ok &= error < LIMITS[inputs[0].dtype]
for name, inputs in faulty:
    error = error_of(inputs, pick=others)
    print("faulty", name, "error", error)
    ok &= error > 0.02
print("as said" if ok else "NOT as said")
sys.exit(0 if ok else 1)
