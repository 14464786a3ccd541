"""The first two of three parts of a projection."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


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
ordinary = []
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for shape in ((5, 7), (2, 3, 129), (3000,)):
        inputs = swiglu.make_inputs(shape, dtype, torch.device("cpu"), torch.default_generator)
        ordinary.append(measure(*inputs))
h = torch.randn(6, 2 * 70)
ordinary += [measure(*h.chunk(2, dim=-1)), measure(*h.chunk(2, dim=-1)[::-1]), measure(h[:, ::2], h[:, 1::2])]
h = torch.randn(6, 3 * 70)
gate, up, _ = h.chunk(3, dim=-1)
error = measure(gate, up)
ordinary = max(ordinary)
print("ordinary inputs: error", ordinary, "of the largest value")
print("WRONG" if error > LIMIT else "right", "error", error, "of the largest value")
sys.exit(0 if ordinary < 0.01 and error > LIMIT else 1)
