"""float16, keys that are alike, values of about 1000, 260 positions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_parts_in_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    q, k, v, *rest = inputs
    return gqa.exact(wide(q), wide(k), wide(v), *rest)


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
    for shape in ((1, 4, 2, 33, 64), (2, 6, 3, 150, 32), (1, 2, 1, 300, 80)):
        inputs = gqa.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
q, k, v = torch.randn(1, 2, 260, 32), 0.1 * torch.randn(1, 1, 260, 32), 1000 + torch.randn(1, 1, 260, 32)
for causal in (False, True):
    ordinary.append(measure(q, k, v, causal))
    ordinary.append(measure(q.half(), k.half(), (v / 100).half(), causal))
error = measure(q.half(), k.half(), v.half(), True)
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
