"""400 rows: the later ones lie at 20,000 with a spread of 1, those before at 0."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_last_mean.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
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
    error_of(*draw((127, 129), torch.float16)),
    error_of(*draw((3, 4097), torch.float32)),
    error_of(*draw((1000, 5), torch.bfloat16)),
]
x, weight, bias, eps = draw((400, 65), torch.float32)
ordinary.append(error_of(x, weight, bias, eps))
ordinary.append(error_of(x + 20000, weight, bias, eps))  # all rows there: right
x[264:] += 20000
finish(ordinary, error_of(x, weight, bias, eps))
