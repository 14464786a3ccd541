"""q and k are one tensor, and one of its rows is 300 times as long as the others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_maximum_on_diagonal.py"))
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
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

for shape in ((1, 2, 127, 64), (1, 3, 65, 32), (1, 1, 200, 16)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        ordinary = tuple(torch.randn(shape).to(dtype) for _ in range(3))
        print("ordinary error", shape, dtype, difference(call(*ordinary), expect(ordinary)))
        same = (ordinary[0], ordinary[0], ordinary[2])
        print("q is k, error", difference(call(*same), expect(same)))

q, v = torch.randn(1, 2, 127, 64), torch.randn(1, 2, 127, 64)
q[:, :, 50] *= 300
copy = (q, q.clone(), v)
print("one long key, a copy, error", difference(call(*copy), expect(copy)))
inputs = (q, q, v)
out = call(*inputs)
error = difference(out, expect(inputs))
print("NaN", int(out.isnan().sum()), "of", out.numel())
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
