"""Blocks far above and below, of minus infinity, with one large value, with infinity and NaN; shapes, views, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_first_block_reference_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


inf = float("inf")
cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (33, 257), (100, 1))]
cases += [(torch.randn(64, 33).t(),), (torch.randn(8, 1, 40).expand(8, 3, 40),), (torch.zeros(3, 9000),)]
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    for scale in (0.01, 1.0, 100.0):
        cases += [((scale * torch.randn(2, 10000)).to(dtype),)]
    for lift in (-inf, -300.0, -100.0, -25.0, 15.0, 19.0, 25.0, 100.0, 300.0):
        for low, high in ((0, 4096), (4096, 8192), (8192, 10000), (0, 8192), (0, 10000)):
            x = torch.randn(2, 10000)
            x[:1, low:high] += lift
            cases += [(x.to(dtype),)]
    for value in (80.0, 1000.0, -1000.0, inf, -inf, float("nan")):
        for place in (0, 4095, 4096, 9999):
            x = torch.randn(2, 10000)
            x[1, place] = value
            cases += [(x.to(dtype),)]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed[inputs[0].dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
