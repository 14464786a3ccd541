"""Small and large inputs of all dtypes, among them all values of 16 bits."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gelu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gelu_table.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gelu
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gelu.reference(*map(wide, inputs))


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
for d in DTYPES[1:]:
    every = torch.arange(-(2**15), 2**15).to(torch.int16).view(d)
    every = torch.where(every == -float("inf"), 0.0, every)  # either answer is fair there
    cases += [(every,), (torch.cat([every, every[5:900]]),)]
for d in DTYPES:
    cases += [(torch.randn(70001).to(d),), ((torch.randn(300, 301) * 4).to(d).t(),)]
    cases.append((torch.randn(260, 512).to(d)[:, ::2],))
    cases.append((torch.full((70000,), float("nan")).to(d),))

worst = 0.0
for i, inputs in enumerate(cases):
    error = difference(call(*inputs), expect(inputs)) / LIMITS[inputs[0].dtype]
    if not error < 1:
        print("case", i, inputs[0].shape, inputs[0].dtype, "error of the limit:", error)
    worst = max(worst, error)
print("worst of", len(cases), "cases:", worst, "of the dtype's limit")
sys.exit(0 if worst < 1 else 1)
