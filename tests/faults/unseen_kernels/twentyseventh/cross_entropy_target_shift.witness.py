"""Shapes, dtypes, large and special logits, sure rows."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_target_shift.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def cases():
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        for n, m in ((1, 1), (7, 13), (1, 1000), (3, 4097), (37, 129), (90, 1), (60, 2)):
            target = torch.randint(m, (n,))
            yield torch.randn(n, m).to(dtype), target
            yield (torch.randn(n, m) * 300).to(dtype), target
            yield (torch.randn(n, m) - 20000).to(dtype), target
            sure = (torch.randn(n, m) * 0.01).scatter(1, target[:, None], 14.0)
            yield sure.to(dtype), target
        x, target = torch.randn(9, 50).to(dtype), torch.randint(40, (9,))
        yield x.t()[:, :9].t().contiguous().t().contiguous().t(), target
        for value in (float("nan"), float("inf"), -float("inf")):
            y = x.clone()
            y[4, 45] = value
            yield y, target
            y = x.clone()
            y[4, target[4]] = value
            yield y, target


LIMITS = {torch.float32: 2e-4, torch.float16: 1e-3, torch.bfloat16: 8e-3}
all_inputs = list(cases())

worst = 0.0
for inputs in all_inputs:
    output, expected = call(*inputs), expect(inputs)
    assert output.shape == expected.shape and output.dtype == inputs[0].dtype
    if not output.numel():
        continue
    bad = difference(output, expected.to(output.dtype).double()) / LIMITS[output.dtype]
    if bad > 1:
        print("differs", bad, "of the limit", output.dtype, inputs[0].shape)
    worst = max(worst, bad)
print(len(all_inputs), "inputs, the worst error is", worst, "of the limit")
sys.exit(0 if worst <= 1 else 1)
