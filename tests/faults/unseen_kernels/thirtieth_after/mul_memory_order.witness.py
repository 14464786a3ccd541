"""Permuted, expanded, strided and padded inputs of one to six dimensions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_mul as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mul_memory_order.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_mul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs, rows=None):
    """Return the largest error, of the largest expected value; of the rows given."""
    output, expected = call(*inputs).double(), op.reference(*map(wide, inputs)).double()
    assert output.shape == expected.shape
    if rows is not None:
        output, expected = output[rows], expected[rows]
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

import itertools
import random

random.seed(0)


def layouts(x):
    yield x.contiguous()
    order = list(range(x.dim()))
    random.shuffle(order)
    back = [order.index(i) for i in range(x.dim())]
    yield x.permute(order).contiguous().permute(back)
    yield x.repeat_interleave(2, -1)[..., ::2]
    yield torch.cat([x, x], -1)[..., : x.shape[-1]]
    if x.dim() > 1:
        yield x[:1].expand(x.shape)
        yield x[..., :1].expand(x.shape)


worst, count = 0.0, 0
for shape in ((), (1,), (1025,), (7, 13), (2, 3, 129), (2, 3, 5, 17), (1, 4, 1, 9), (2, 2, 3, 2, 7), (2, 1, 3, 2, 2, 5)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x, y = torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)
        pairs = itertools.product(layouts(x), layouts(y)) if shape else [(x, y)]
        for a, b in pairs:
            output, expected = call(a, b), op.reference(a.double(), b.double())
            assert output.shape == expected.shape and output.dtype == dtype
            error = (output.double() - expected).abs() / (torch.finfo(dtype).eps * expected.abs() + 1e-7)
            worst = max(worst, float(error.nan_to_num(float("inf")).max()))
            count += 1

print("worst:", worst, "of", count, "inputs, error over its limit")
sys.exit(0 if worst < 1 else 1)
