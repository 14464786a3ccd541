"""Types in turn, every value of the 16-bit types, views, infinities and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table.py"))
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


for _ in range(2):
    for dtype in DTYPES:
        for shape in [(1, 1), (7, 13), (1025,), (2, 3, 129), (1000, 1)]:
            check(dtype, torch.randn(shape).to(dtype))
            check(dtype, 3 * torch.randn(shape).to(dtype).T if len(shape) == 2 else torch.randn(shape).to(dtype))
        check(dtype, torch.tensor([0.0, -0.0, float("inf"), float("nan"), 1e-8, -30000.0]).to(dtype))
        check(dtype, torch.randn(50, 40).to(dtype)[1:, 3::2])
        if dtype != torch.float32:
            every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(dtype)
            check(dtype, every[every != float("-inf")])

print("right" if worst <= 1.0 else "WRONG", "in", count, "inputs, worst", worst, "of the tolerance")
sys.exit(0 if worst <= 1.0 else 1)
