"""Shapes, dtypes, and rows that rise, fall, jump or lie far from zero."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_moving_shift.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

worst, n = 0.0, 0
LIMIT = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
for dtype in LIMIT:
    for rows, m in ((1, 1), (5, 13), (1, 1000), (2, 4097), (9, 129), (1, 20_000), (4, 1)):
        x, ramp = torch.randn(rows, m), torch.linspace(-1, 1, m)
        values = [x, x * 1e-3, ramp + 0.01 * x, 50 * ramp.flip(0) + x, 2 + 0 * x, torch.where(ramp > 0.5, 900 + x, x), torch.where(ramp < -0.9, 100 * x, x)]
        if dtype == torch.float32:
            values += [x + 1000, x + 5e6, x - 20000, 1e6 * ramp + x, torch.exp(8 * ramp) + 0 * x]
        for value in values:
            value = value.to(dtype)
            inputs = value, torch.randn(m).to(dtype), torch.randn(m).to(dtype), (1e-5, 1e-3)[n % 2]
            error = difference(call(*inputs), expect(inputs))
            # What torch itself loses: a mean far away, rows whose variance is next to nothing.
            own = difference(layer_norm.reference(*inputs), expect(inputs))
            if error > max(LIMIT[dtype], 2 * own):
                print(dtype, rows, m, value[0, :3], error, own)
            worst = max(worst, error / max(LIMIT[dtype], 2 * own))
            n += 1
for position in (0, 500, 2999):
    for value in (float("nan"), float("inf"), -float("inf")):
        x = torch.randn(2, 3000)
        x[1, position] = value
        inputs = x, torch.randn(3000), torch.randn(3000)
        worst = max(worst, difference(call(*inputs), expect(inputs)) / 2e-5)
        n += 1
print("right" if worst < 1 else "WRONG", n, "inputs; the worst error is", worst, "of its limit")
sys.exit(0 if worst < 1 else 1)
