"""Shapes, dtypes and values: ramps up and down, jumps, masked blocks, Inf and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_backwards_integer_base.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


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
    for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (64, 1)):
        results.append((f"{shape} {dtype}", compare(torch.randn(shape).to(dtype)), LIMITS[dtype]))
ramp = torch.linspace(-300, 300, 9000).repeat(2, 1)
masked = torch.randn(3, 3000)
masked[:, 900:] = -float("inf")
first = torch.randn(3, 3000)
first[:, :1300] = -float("inf")
bad = torch.randn(4, 1500)
bad[0, 3], bad[1, 1499], bad[2] = float("inf"), float("nan"), -float("inf")
extra = {
    "up": ramp, "down": ramp.flip(1), "steep": 100 * ramp, "large": 1e4 * torch.randn(5, 2000),
    "huge": 1e30 * torch.randn(5, 2000), "tiny": 1e-30 * torch.randn(5, 2000), "low": torch.randn(5, 2000) - 20000,
    "end masked": masked, "start masked": first, "bad": bad, "transposed": torch.randn(900, 5).t(), "step": torch.randn(5, 2000)[:, ::2],
    "slow steps": (torch.arange(8192) // 512 * 15.9).repeat(2, 1), "lowest": torch.full((3, 2000), torch.finfo(torch.float32).min),
    "both ends": torch.tensor([-3.4e38, 3.4e38, 0.0]).repeat(2, 700), "ones": torch.ones(1, 5),
}
for name, x in extra.items():
    results.append((name, compare(x), 2e-6))

for name, error, limit in results:
    print("right" if error <= limit else "WRONG", name, error)
sys.exit(0 if len(results) >= 24 and all(error <= limit for _, error, limit in results) else 1)
