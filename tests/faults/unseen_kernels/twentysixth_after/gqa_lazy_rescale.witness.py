"""Rising and falling scores, far tiles, groups, causal or not."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    expected = expect(inputs)
    return difference(call(*inputs), expected)


def show(label, error):
    print(label, "- error", error, "of the largest value")
    return error


TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
DTYPES = tuple(TOLERANCE)
worst, count = 0.0, 0


def check(dtype, *inputs):
    global worst, count
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    worst = max(worst, error_of(*inputs) / TOLERANCE[dtype])
    for old, new in zip(before, inputs):
        if torch.is_tensor(old) and not torch.equal(old.nan_to_num(), new.nan_to_num()):
            worst = float("inf")
    count += 1


for dtype in DTYPES:
    for b, h, kv, s, d in [(1, 1, 1, 1, 64), (1, 4, 2, 67, 32), (2, 2, 2, 40, 16), (1, 3, 1, 70, 24)]:
        for causal in (False, True):
            q, k, v = torch.randn(b, h, s, d), torch.randn(b, kv, s, d), torch.randn(b, kv, s, d)
            for grow in (0.0, 20.0, -20.0) if dtype == torch.float32 else (0.0, 4.0):
                # each key's scores are higher or lower than those of the one before
                slope = grow * torch.linspace(0, 1, s)[:, None] * q.mean((1, 2), keepdim=True)[:, :1]
                check(dtype, q.to(dtype), (k + slope).to(dtype), v.to(dtype), causal)
    q = torch.ones(1, 2, 90, 16)
    for sign in (1, -1):
        k = (sign * torch.arange(90.0)[:, None] / 2 * torch.ones(16)).expand(1, 2, 90, 16)
        check(dtype, q.to(dtype), k.to(dtype), torch.randn(1, 2, 90, 16).to(dtype), sign > 0)

print("right" if worst <= 1.0 else "WRONG", "in", count, "inputs, worst", worst, "of the tolerance")
sys.exit(0 if worst <= 1.0 else 1)
