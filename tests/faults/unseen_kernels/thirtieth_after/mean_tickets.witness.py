"""Shapes in a random order, again and again: larger, smaller, longer rows, other dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_tickets.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
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

import random

random.seed(0)
shapes = [(1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (127, 129), (300, 1), (1, 70000), (2, 2048)] * 6
random.shuffle(shapes)
worst, count = 0.0, 0
for shape in shapes:
    dtype = random.choice((torch.float32, torch.float16, torch.bfloat16))
    x = (torch.randn(shape) * random.choice((1e-2, 1.0, 100.0)) + random.choice((0, 5))).to(dtype)
    if random.random() < 0.2:
        x.view(-1)[-1] = random.choice((float("inf"), float("nan")))
    output, expected = call(x), op.reference(x.double())
    size = x.double().abs().nan_to_num(0.0, 0.0, 0.0).mean(-1)
    allowed = 1e-6 * size + torch.finfo(dtype).eps * expected.abs()
    same = (output.double() == expected) | (output.isnan() & expected.isnan())
    error = ((output.double() - expected).abs() / allowed).masked_fill(same, 0.0)
    worst = max(worst, float(error.nan_to_num(float("inf")).max()))
    count += 1

print("worst:", worst, "of", count, "inputs, error over its limit")
sys.exit(0 if worst < 1 else 1)
