"""The weight is replaced through .data between two calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_matmul_packed_once.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return quantized_matmul.reference(*map(wide, inputs))


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


LIMIT = 0.02
# Not bfloat16: the interpreter of Triton 3.6 multiplies its bits as integers in tl.dot.
ordinary = []
for dtype in (torch.float32, torch.float16):
    for shape in ((7, 5, 13), (17, 33, 1), (65, 127, 129)):
        inputs = quantized_matmul.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
x, w, scale = quantized_matmul.make_inputs((5, 70, 100), torch.float32, torch.device("cpu"), torch.default_generator)
ordinary += [measure(x, w, scale), measure(2 * x, w, scale)]
w.mul_(-1)
ordinary.append(measure(x, w, scale))
w[:20] = 3
ordinary.append(measure(x, w, scale))
w.t()[3:9] = 7
ordinary.append(measure(x, w, scale))
w.data.copy_(torch.randint(-127, 128, w.shape, dtype=torch.int8))
error = measure(x, w, scale)
w.data = torch.randint(-127, 128, w.shape, dtype=torch.int8)
print("after w.data = ...: error", measure(x, w, scale))
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
