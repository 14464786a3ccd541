"""Factors that are repeated along rows, columns, both; squares; views of one memory."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_mul_repeated_factor.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
generator = torch.Generator().manual_seed(0)
CPU = torch.device("cpu")


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_mul.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    finite = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    size = finite.abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=torch.float32):
    return vector_mul.make_inputs(shape, dtype, CPU, generator)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


errors = []


def test(*inputs):
    limit = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}[inputs[0].dtype]
    errors.append(error_of(*inputs) / limit)


for dtype in (torch.float16, torch.bfloat16, torch.float32):
    for shape in ((1, 1), (7, 13), (8, 128), (9, 127), (33, 700), (200, 1), (20, 512)):
        x, y = make(shape, dtype)
        test(x, y)
        test(x, x)
        test(x, y[:1].expand(shape))
        test(x[-1:].expand(shape), y)
        test(x[:1].expand(shape), y[:1].expand(shape))
        test(x, x[:1].expand(shape))
        test(x[:, :1].expand(shape), y)
        test(x[:1, :1].expand(shape), y)
        test(x.T, y.T)
        test(x.T, y[:, -1:].T.expand(shape[::-1]))
        test(x[::2, ::2], y[1:2, ::2].expand(x[::2, ::2].shape) if shape[0] > 1 else y[::2, ::2])
for shape in ((5,), (2, 3, 129), (2, 9, 256)):
    x, y = make(shape)
    test(x, y)
    test(x, y[:1].expand(shape))
print(len(errors), "inputs; largest error", max(errors), "of the limit")
sys.exit(0 if max(errors) < 1 else 1)
