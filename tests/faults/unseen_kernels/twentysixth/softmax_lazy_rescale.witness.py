"""Ordinary, large, rising, falling, infinite and NaN rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_lazy_rescale.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


DTYPES = torch.float32, torch.float16, torch.bfloat16
SHAPES = (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (17, 511), (40, 1)

cases = [(torch.randn(s).to(d),) for s in SHAPES for d in DTYPES]
for d in DTYPES:
    up = torch.linspace(-40, 40, 3000).expand(3, 3000)
    cases += [(up.to(d),), (up.flip(1).to(d),), (100 * torch.randn(5, 2000)).to(d).split(5)]
    cases += [((torch.randn(5, 2000) * 3 + 1000).to(d),), (torch.randn(300, 9).t().to(d),)]
    odd = torch.randn(9, 1700)
    odd[0] = odd[1, 3:] = odd[2, :1200] = -float("inf")
    odd[3, 5], odd[4, 1600] = float("nan"), float("inf")
    odd[5, :] = float("nan")
    odd[6, 0] = 30.0
    odd[7, 1699] = 30.0
    cases.append((odd.to(d),))
top = torch.full((2, 1100), -3e38)
top[0, 1000] = 3e38
cases.append((top,))

worst = 0.0
for i, inputs in enumerate(cases):
    error = difference(call(*inputs), expect(inputs)) / LIMITS[inputs[0].dtype]
    if not error < 1:
        print("case", i, inputs[0].shape, inputs[0].dtype, "error of the limit:", error)
    worst = max(worst, error)
print("worst of", len(cases), "cases:", worst, "of the dtype's limit")
sys.exit(0 if worst < 1 else 1)
