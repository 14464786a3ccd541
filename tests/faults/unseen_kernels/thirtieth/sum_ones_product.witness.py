"""Shapes, layouts and special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_ones_product.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return sum.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    if output.numel() == 0:
        return 0.0 if output.shape == expected.shape else float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def measure(*inputs):
    return difference(call(*inputs), expect(inputs))


def cases(dtype):
    inf, nan = float("inf"), float("nan")
    for shape in (*sum.SHAPES, (0, 5), (5, 0), (1023,), (1024,), (2047,), (2049,), (6144,), (2, 2, 3, 700))[:]:
        x = torch.randn(shape)
        yield (x.to(dtype),)
        yield ((x + 3).to(dtype),)
        if x.dim() and x.numel():
            y = x.clone()
            y[..., ::7] = inf
            yield (y.to(dtype),)
            y[..., 2::5] = -inf
            yield (y.to(dtype),)
            x[..., -1] = nan
            yield (x.to(dtype),)
    big = torch.randn(40, 60).to(dtype)
    for x in (big.T, big[:, 3:20], big[::3], big[:, ::2], big[1], big[:, 1], big[:1].expand(5, 60), big.flip(0)):
        yield (x,)

# Not bfloat16: the interpreter of Triton 3.6 multiplies its bits as integers in tl.dot.
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3}
failed = count = 0
for dtype, limit in LIMITS.items():
    for inputs in cases(dtype):
        error = measure(*inputs)
        count += 1
        if error > limit:
            failed += 1
            print("WRONG", dtype, [tuple(x.shape) for x in inputs], error)
print(count, "inputs,", failed, "wrong")
sys.exit(1 if failed else 0)
