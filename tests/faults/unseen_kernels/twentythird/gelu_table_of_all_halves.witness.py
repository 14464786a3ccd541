"""Shapes, dtypes, all bit patterns, views."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table_of_all_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def compare(*inputs):
    return difference(call(*inputs), expect(inputs))


LIMITS = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
results = []
for dtype in LIMITS:
    for shape in ((1, 1), (7, 13), (1025,), (2, 3, 129), (127, 129), (257, 1023), (65536,), (65535,), ()):
        results.append((f"{shape} {dtype}", compare(torch.randn(shape).to(dtype)), LIMITS[dtype]))
for dtype in (torch.float16, torch.bfloat16):
    patterns = torch.arange(-(2**15), 2**15).to(torch.int16).view(dtype)
    patterns = patterns[patterns != -float("inf")]
    x = torch.cat([patterns, torch.ones(5, dtype=dtype)])
    expected = expect((x,)).to(dtype)
    near = (call(x).double() - expected.double()).abs() <= torch.finfo(dtype).eps * expected.double().abs() + 1e-6
    near |= (call(x) == expected) | (call(x).isnan() & expected.isnan())
    results.append((f"all of {dtype}", float((~near).sum()), 0.0))
    x = torch.randn(300, 600).to(dtype)
    for name, view in {"transposed": x.t(), "odd": x.flatten()[1:], "step": x[:, ::2], "expanded": x[:1].expand(300, 600)}.items():
        results.append((f"{name} {dtype}", compare(view), LIMITS[dtype]))
    results.append((f"tiny {dtype}", compare(1e-4 * torch.randn(300, 300).to(dtype)), LIMITS[dtype]))

for name, error, limit in results:
    print("right" if error <= limit else "WRONG", name, error)
sys.exit(0 if len(results) >= 24 and all(error <= limit for _, error, limit in results) else 1)
