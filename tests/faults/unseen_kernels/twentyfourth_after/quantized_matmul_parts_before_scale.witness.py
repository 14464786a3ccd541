"""float16, k past 4,096, values of one sign."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

path = Path(__file__).with_name("quantized_matmul_parts_before_scale.py")
spec = importlib.util.spec_from_file_location("kernel", path)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
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
    expected = pick(quantized_matmul.reference(*map(wide, inputs)))
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

def new(m, n, k, low=-127, dtype=torch.float16):
    x = torch.randn(m, k) if low < 0 else torch.rand(m, k)
    weight = torch.randint(low, 128, (n, k), dtype=torch.int8)
    return x.to(dtype), weight, ((torch.rand(n) + 0.5) / 127).to(dtype)


ordinary = [
    ("random", new(3, 70, 4097)),
    ("longer", new(3, 70, 20000)),
    ("float32", new(3, 70, 5000, dtype=torch.float32)),
    ("one sign, float32", new(3, 70, 5000, 0, torch.float32)),
    ("one sign, k = 4,096", new(3, 70, 4096, 0)),
]
if DEVICE == "cuda":  # the interpreter has no tl.dot of bfloat16
    ordinary.append(("one sign, bfloat16", new(3, 70, 5000, 0, torch.bfloat16)))
faulty = [("one sign, k = 4,097", new(3, 70, 4097, 0)), ("longer", new(17, 70, 9000, 0))]

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
