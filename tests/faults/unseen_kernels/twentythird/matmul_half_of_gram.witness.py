"""Products with the own transpose, and others that look alike."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_half_of_gram.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return matmul.reference(*map(wide, inputs))


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
for dtype in (torch.float32, torch.float16):  # the interpreter has no product of bfloat16
    for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (65, 127, 129), (3, 31, 1025)):
        results.append((f"{m, n, k} {dtype}", compare(torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)), LIMITS[dtype]))
    for m, k in ((1, 1), (7, 13), (33, 1), (129, 65), (300, 40), (64, 300)):
        a = torch.randn(m, k).to(dtype)
        results.append((f"gram {m, k} {dtype}", compare(a, a.t()), LIMITS[dtype]))
        results.append((f"gram of the transpose {m, k} {dtype}", compare(a.t(), a), LIMITS[dtype]))
a = torch.randn(100, 100)
extra = {
    "square": (a, a), "part": (a[:70], a.t()[:, :70]), "parts differ": (a[:70], a.t()[:, :40]), "steps": (a[::2], a[::2].t()),
    "other end": (a, a.flip(0).t()), "expanded row": (a[:1].expand(50, 100), a[:1].expand(50, 100).t()),
    "expanded column": (a[:, :1].expand(100, 70), a[:, :1].expand(100, 70).t()), "symmetric": (a + a.t(), a + a.t()),
    "windows": (torch.randn(200).unfold(0, 64, 1), torch.randn(200).unfold(0, 64, 1).t()),
}
for name, pair in extra.items():
    results.append((name, compare(*pair), 2e-6))

for name, error, limit in results:
    print("right" if error <= limit else "WRONG", name, error)
sys.exit(0 if len(results) >= 24 and all(error <= limit for _, error, limit in results) else 1)
