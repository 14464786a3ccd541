"""3,590 classes (7 parts); 32,001 and 50,265 too: the last class is in no part."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_even_parts.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
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


def draw(shape, dtype):
    return op.make_inputs(shape, dtype, torch.device("cpu"), g)


ordinary = [
    error_of(*draw(shape, torch.float32))
    for shape in ((1, 1, 1), (129, 2, 64), (65, 127, 129), (3, 1000, 31), (9, 3589, 16), (9, 4096, 16))
]
x, weight, target = draw((9, 3590, 16), torch.float32)
target[:] = 3589
x[:], weight[-1] = 1, 0.4  # a class that the model is somewhat sure of
errors = [error_of(x, weight, target)]
target[:] = 5  # the class is missing in the sum, too
weight[-1] = 0.8
errors.append(error_of(x, weight, target))
x, weight, target = draw((3, 32001, 16), torch.float32)
target[:] = 32000
x[:], weight[-1] = 1, 0.4
errors.append(error_of(x, weight, target))
print(errors)
finish(ordinary, min(errors))
