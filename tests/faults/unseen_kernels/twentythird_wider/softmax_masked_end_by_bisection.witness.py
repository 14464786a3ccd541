"""Scores masked at the end and in a hole at the row's middle."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_masked_end_by_bisection.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
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
x = torch.randn(4, 1000)
causal, hole, hole_only, window = x.clone(), x.clone(), x.clone(), x.clone()
for i in range(4):
    causal[i, 200 * i + 100 :] = -inf
hole[:, 450:550] = -inf
hole_only[:, 450:550] = -inf
hole[:, 900:] = -inf
window[:, :100] = window[:, 700:] = -inf
late = x.clone()
late[:, :600] = late[:, 800:] = -inf
usual = {
    "random": make((7, 13)),
    "long": make((3, 4097)),
    "causal": (causal,),
    "a hole, no masked end": (hole_only,),
    "a window at the middle": (window,),
    "all masked": (torch.full((2, 9), -inf),),
}
faults = {"a hole and a masked end": (hole,), "a late window, half": (late.half(),)}

for text, inputs in usual.items():
    error = difference(inputs)
    print("usual:", text, "error", error)
    assert error < 0.01
errors = {text: difference(inputs) for text, inputs in faults.items()}
for text, error in errors.items():
    print("WRONG" if error > 0.02 else "right", text, "error", error, "of the largest value")
sys.exit(0 if all(e > 0.02 for e in errors.values()) else 1)
