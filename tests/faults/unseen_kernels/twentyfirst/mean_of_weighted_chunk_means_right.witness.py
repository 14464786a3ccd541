"""Short and long rows, last chunks of 1 and of all elements, scales, dtypes and strides."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mean

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mean_of_weighted_chunk_means_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mean
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mean.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = [(1.0 + torch.randn(s),) for s in (
    (1, 1), (7, 13), (1, 1000), (3, 4097), (2, 3, 129), (1025,), (100, 1), (3, 8192), (3, 8193), (2, 9000), (2, 2, 12288),
    (2, 12289), (1, 300_001), (12_000,),
)]
cases += [(x.half(),) for (x,) in cases] + [(x.bfloat16(),) for (x,) in cases]
cases += [(1e30 * (1 + torch.randn(2, 9000)),), (1e-30 * (1 + torch.randn(2, 9000)),), (30_000 * torch.ones(2, 9001).half(),)]
cases += [(1 + torch.randn(9000, 3).t(),), (1 + torch.randn(3, 1).expand(3, 9000),), (1 + torch.randn(2, 18_002)[:, ::2],)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
