"""Windows of three over every second value of a vector of nine."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_dense_by_span.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def inputs(shape, dtype):
    return vector_mul.make_inputs(shape, dtype, torch.device("cpu"), torch.Generator().manual_seed(0))


def error_of(inputs):
    return difference(call(*inputs), expect(inputs))


x, y = torch.randn(64), torch.randn(64)


def windows(x, n, width, step, stride):
    return x.as_strided((n, width), (step, stride))


ordinary = max(error_of(inputs(s, d)) for s in ((7, 13), (3, 4097), (2, 3, 129)) for d in (torch.float32, torch.float16))
a, b = inputs((17, 33), torch.float32)
ordinary = max(ordinary, error_of((a.T, b.T)), error_of((a[:, ::2], b[:, ::2])))
ordinary = max(ordinary, error_of((windows(x, 10, 4, 1, 1), windows(y, 10, 4, 1, 1))), error_of((a[:1].expand(5, 33), b[:1].expand(5, 33))))
half = x[::2].unfold(0, 3, 1)[:3], y[::2].unfold(0, 3, 1)[:3]
print(half[0].stride(), half[0].shape)
error = error_of(half)

print("ordinary", ordinary)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 and ordinary < 0.01 else 1)
