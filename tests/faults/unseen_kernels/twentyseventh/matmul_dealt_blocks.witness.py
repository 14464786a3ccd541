"""Shapes, dtypes and layouts, with one and with four parts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_dealt_blocks.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
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


limit = {torch.float32: 2e-6, torch.float16: 2e-3}
errors = []
for m, n, k in ((1, 1, 1), (7, 5, 13), (17, 33, 1), (1, 129, 65), (129, 1, 64), (65, 127, 129), (3, 31, 1025), (257, 550, 70), (4, 4, 0)):
    for dtype in limit:
        a, b = torch.randn(m, k).to(dtype), torch.randn(k, n).to(dtype)
        errors.append((error_of(a, b), dtype))
        if m < 200:
            errors.append((error_of(a.T.contiguous().T, b.T.contiguous().T), dtype))
            if m > 1:  # a single sum may cancel
                errors.append((error_of(a, b[:, :1].expand(k, n)), dtype))
        if n > m:
            errors.append((error_of(b.T[:m], b), dtype))
worst = max(error / limit[dtype] for error, dtype in errors)
print(len(errors), "inputs, worst", worst, "of the limit")
sys.exit(0 if worst < 1 and len(errors) >= 24 else 1)
