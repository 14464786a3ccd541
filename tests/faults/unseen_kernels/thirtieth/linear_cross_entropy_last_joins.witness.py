"""Shapes, layouts and special values."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_last_joins.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return linear_cross_entropy.reference(*map(wide, inputs))


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
    cpu, draws = torch.device("cpu"), torch.default_generator
    shapes = ((1, 1, 1), (7, 5, 13), (17, 33, 1), (65, 127, 40), (40, 65, 9), (33, 513, 7))
    for shape in shapes:
        x, w, target = linear_cross_entropy.make_inputs(shape, dtype, cpu, draws)
        yield x, w, target
        yield 8 * x, w, target
        yield x, w.flip(0), torch.zeros_like(target)
        yield x.T.contiguous().T, w.T.contiguous().T, target.repeat_interleave(2)[::2]
        y = x.clone()
        y[-1, 0] = float("nan")
        yield y, w, target
        y[-1, 0] = float("inf")
        yield y, w, target

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
