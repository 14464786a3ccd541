"""Parts of rows at -inf, ties, sure rows, NaN, large values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_others.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), cross_entropy.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


INF = float("inf")
inputs = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for n, classes in ((1, 1), (7, 13), (3, 4097), (33, 129), (65, 2), (2, 2048), (5, 1024)):
        target = torch.randint(classes, (n,))
        x = torch.randn(n, classes)
        inputs.append((x.to(dtype), target))
        inputs.append(((30 * x - 200).to(dtype), target))
        y = x.clone()
        start = int(torch.randint(classes, ()))
        y[:, start : start + classes // 2 + 1] = -INF
        inputs.append((y.to(dtype), target))
        y = torch.full_like(x, -INF).scatter(1, target[:, None], -3.0)
        inputs.append((y.to(dtype), target))
        y = (0.01 * x).scatter(1, target[:, None], 12.0 if classes > 100 else 6.0)
        inputs.append((y.to(dtype), target))
        y = x - 100 * (torch.rand_like(x) < 0.9)
        inputs.append((y.to(dtype), target))
        for value in (float("nan"), INF):
            y = x.clone()
            y[n // 2, classes // 2] = value
            inputs.append((y.to(dtype), target))

LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = [(error_of(x), x[0].dtype) for x in inputs]
good = all(error <= LIMITS[dtype] for error, dtype in errors)
for i, (error, dtype) in enumerate(errors):
    if error > LIMITS[dtype]:
        print(i, dtype, error, [getattr(t, "shape", t) for t in inputs[i]])
print("right" if good else "WRONG", len(errors), "inputs, largest error", max(errors, key=lambda e: e[0]))
sys.exit(0 if good else 1)
