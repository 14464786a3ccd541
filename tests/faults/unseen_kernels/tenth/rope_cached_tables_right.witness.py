"""Tables of several bases, positions and types, changed in place too."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import rope

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("rope_cached_tables_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_rope
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return rope.reference(*wide)


def judge(label, inputs, limit=2e-3):
    global tried
    tried += 1
    expected = exact(*inputs)
    before = [x.clone() if torch.is_tensor(x) else x for x in inputs]
    output = call(*inputs)
    pairs = output.double().nan_to_num(nan=7e77), expected.double().nan_to_num(nan=7e77)
    error = torch.where(pairs[0] == pairs[1], 0.0, (pairs[0] - pairs[1]).abs())
    usual = expected[expected.isfinite()].abs().double()
    size = float(usual.max()) if usual.numel() else 1.0
    saved = all(
        torch.equal(x.double().nan_to_num(nan=7e77), y.double().nan_to_num(nan=7e77))
        for x, y in zip(inputs, before) if torch.is_tensor(x)
    )
    if float(error.max()) > limit * size + 1e-7 or not saved or output.shape != expected.shape:
        wrong.append(f"{label}: {float(error.max())} of {size}, inputs saved {saved}")


def tables(seq, half, base, first=0):
    angles = torch.arange(first, first + seq)[:, None] * base ** -(torch.arange(float(half)) / half)
    return angles.cos(), angles.sin()


for dtype in (torch.float32, torch.float16):
    for seq, half in ((1, 1), (7, 13), (64, 32), (33, 40)):
        x = torch.randn(2, 3, seq, 2 * half).to(dtype)
        for base, first in ((1e4, 0), (1e6, 0), (1e4, 100)):
            cos, sin = tables(seq, half, base, first)
            judge(f"{seq} {half} {base} {first}", (x, cos.to(dtype), sin.to(dtype)))
        cos, sin = cos.to(dtype), sin.to(dtype)
        cos[-1, -1] = -0.5
        judge(f"in place {seq} {half}", (x, cos, sin))
        judge(f"exchanged {seq} {half}", (x, sin, cos))
x = torch.randn(2, 33, 3, 16).transpose(1, 2)
cos, sin = tables(33, 8, 1e4)
judge("strides", (x, cos.T.contiguous().T, sin.repeat(1, 2)[:, :8]))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
