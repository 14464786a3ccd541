"""One key is 25 times as long as the others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_norm_bound.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


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
    for shape in ((1, 2, 33, 64), (2, 1, 130, 32), (1, 1, 65, 80), (1, 1, 20, 256)):
        inputs = attention.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
q, k, v = (torch.randn(1, 2, 100, 64) for _ in range(3))
k[:, :, 5] *= 3.0
ordinary.append(measure(q, k, v))
k[:, :, 5] *= 25.0 / 3.0
error = measure(q, k, v)
print("largest score", float((q @ k.transpose(-1, -2)).abs().max() / 8))
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
