"""Weights overwritten between two calls: through .data, NumPy, and in inference mode."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_packed_weights.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
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


ordinary = [error_of(*draw((m, 130, 257), d)) for m in (1, 7, 40) for d in (torch.float32, torch.float16)]
x, weight, scale = draw((3, 90, 70), torch.float16)
ordinary.append(error_of(x, weight, scale))
weight.neg_()  # this one is seen
ordinary.append(error_of(x, weight, scale))
errors = []
weight.data.copy_(torch.randint(-127, 128, weight.shape, dtype=torch.int8))
errors.append(error_of(x, weight, scale))
weight.neg_()
ordinary.append(error_of(x, weight, scale))
weight.numpy()[:] = 5
errors.append(error_of(x, weight, scale))
with torch.inference_mode():
    x, weight, scale = draw((3, 90, 70), torch.float16)
    ordinary.append(error_of(x, weight, scale))
    weight.neg_()
    errors.append(error_of(x, weight, scale))
print(errors)
finish(ordinary, min(errors))
