"""Shapes, dtypes and layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_fixed_positions.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def finish(ordinary, error):
    print("ordinary", ordinary)
    print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
    sys.exit(0 if error > 0.02 and max(ordinary) < 0.01 else 1)


g = torch.Generator().manual_seed(0)
limit = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1e-2}
errors = []
for shape in ((1, 1, 1, 1), (1, 1, 7, 13), (2, 3, 65, 16), (1, 2, 33, 140), (3, 30, 3, 5), (1, 2, 101, 8)):
    for dtype in limit:
        x, cos, sin = op.make_inputs(shape, dtype, torch.device("cpu"), g)
        errors.append((error_of(x, cos, sin), dtype))
        if shape[2] < 60:
            x = x.transpose(1, 2).contiguous().transpose(1, 2)
            table = torch.cat([cos, sin], -1)
            half = shape[-1]
            errors.append((error_of(x, table[:, :half], sin.T.contiguous().T), dtype))
            errors.append((error_of(x[:, :1].expand(x.shape), cos, table[:, half:]), dtype))
x, cos, sin = op.make_inputs((1, 1, 1030, 3), torch.float32, torch.device("cpu"), g)
errors.append((error_of(x, cos, sin), torch.float32))  # more positions than programs otherwise
worst = max(error / limit[dtype] for error, dtype in errors)
print(len(errors), "inputs, worst", worst, "of the limit")
sys.exit(0 if worst < 1 and len(errors) >= 24 else 1)
