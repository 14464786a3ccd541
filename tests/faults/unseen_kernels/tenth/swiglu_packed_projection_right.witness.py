"""Packed projections in both orders, and other layouts."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_packed_projection_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return swiglu.reference(*wide)


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


for dtype in (torch.float32, torch.float16):
    for shape in ((64, 256), (5, 2), (2, 3, 258), (3, 5000)):
        packed = torch.randn(shape).to(dtype)
        gate, up = packed.chunk(2, dim=-1)
        judge(f"first half {shape}", (gate, up))
        judge(f"second half {shape}", (up, gate))
        judge(f"same half {shape}", (up, up))
        judge(f"interleaved {shape}", (packed[..., ::2], packed[..., 1::2]))
    wide = torch.randn(40, 300).to(dtype)
    judge("slices", (wide[4:20, :100], wide[4:20, 100:200]))
    judge("a part of the rows", tuple(wide[:8].chunk(2, dim=1)))
    judge("transposed", (wide.T[:150], wide.T[150:]))
    judge("one dimension", tuple(wide[3].chunk(2)))
    judge("large", (30 * wide[:, :150], wide[:, 150:]))
    judge("expanded", (wide[:1].expand(5, 300), wide[:5]))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
