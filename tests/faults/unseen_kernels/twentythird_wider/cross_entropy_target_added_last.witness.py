"""The target's logit is 100 above all others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_target_added_last.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)
g = torch.Generator().manual_seed(0)
cpu = torch.device("cpu")
F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16


def wide(x):
    floating = torch.is_tensor(x) and x.is_floating_point()
    return x.double() if floating else x


def difference(inputs):
    expected = op.reference(*map(wide, inputs)).double()
    output = call(*inputs)
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-30)
    return float(error.masked_fill(same, 0.0).max() / size)


def make(shape, dtype=F32):
    return op.make_inputs(shape, dtype, cpu, g)


inf = float("inf")
logits = torch.randn(9, 1500)
target = torch.randint(1500, (9,))
sure, wrong, masked = logits.clone(), logits.clone(), logits.clone()
rows = torch.arange(9)
sure[rows, target] = 100
sure[3, target[3]] = 0
wrong[rows, (target + 1) % 1500] = 100
masked[2] = -inf
masked[2, target[2]] = 1
usual = {
    "random": make((127, 129)),
    "half": make((7, 13), F16),
    "one class": make((1000, 1)),
    "large, target not on top": (wrong, target),
    "target 40 above": (torch.where(sure == 100, 40.0, sure), target),
    "others masked": (masked, target),
    "rising rows": (torch.linspace(0, 1e4, 1500).repeat(9, 1), target),
}
faults = {"sure": (sure, target), "sure, half": (sure.half(), target)}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
