"""Everything that expand can do with y, alphas, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import vector_add

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("vector_add_expanded_period_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_vector_add
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return vector_add.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1), (7, 13), (1025,), (1, 1000), (2, 3, 129), (3, 4097), (1000, 1)):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        cases += [(torch.randn(shape).to(dtype), torch.randn(shape).to(dtype), alpha) for alpha in (1.0, -2, 0, 0.3)]
full = (4, 20, 48)
for small in ((20, 48), (48,), (1,), (20, 1), (4, 1, 48), (1, 20, 48), (4, 20, 1), (4, 1, 1), (1, 1, 1)):
    cases += [(torch.randn(full), torch.randn(small).expand(full), 0.7)]
cases += [(torch.randn(full), torch.randn(48, 20).t().expand(full), 0.7), (torch.randn(20).expand(full[:2]), torch.randn(4, 20))]
cases += [(torch.randn(5), torch.randn(1).expand(5)), (torch.randn(4, 1, 6), torch.randn(1, 6).expand(4, 1, 6))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    dtypes = [x.dtype for x in inputs if torch.is_tensor(x)]
    allowed = 2e-2 if torch.bfloat16 in dtypes else 4e-3 if torch.float16 in dtypes else 1e-5
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
