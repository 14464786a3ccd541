"""Short and long rows, few and many, with cancellation, infinities and NaN."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import sum

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("sum_compensated.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_sum
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(inputs):
    output, expected = call(*inputs), sum.reference(*map(wide, inputs))
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype, output.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


INF = float("inf")
inputs = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (50000,), (2, 5001), (27, 1023), (100, 1), (7, 10000)):
        x = torch.randn(shape)
        inputs.append((x.to(dtype),))
        inputs.append(((1e-3 * x + 1).to(dtype),))
        for values in ((INF,), (-INF,), (float("nan"),), (INF, -INF)):
            y = x.clone()
            for value in values:
                y.view(-1)[int(torch.randint(y.numel(), ()))] = value
            inputs.append((y.to(dtype),))
    x = 100 * torch.randn(2, 10000)
    inputs.append((torch.cat([x, torch.rand(2, 999), -x], -1).to(dtype),))

LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = [(error_of(x), x[0].dtype) for x in inputs]
good = all(error <= LIMITS[dtype] for error, dtype in errors)
for i, (error, dtype) in enumerate(errors):
    if error > LIMITS[dtype]:
        print(i, dtype, error, [getattr(t, "shape", t) for t in inputs[i]])
print("right" if good else "WRONG", len(errors), "inputs, largest error", max(errors, key=lambda e: e[0]))
sys.exit(0 if good else 1)
