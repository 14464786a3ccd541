"""Parameters that change in every way between calls."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_cached_parameters_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return layer_norm.reference(*wide)


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
    for n in (1, 7, 96, 257, 1000):
        x, weight, bias = torch.randn(9, n).to(dtype), torch.randn(n).to(dtype), torch.randn(n).to(dtype)
        judge(f"first {n}", (x, weight, bias, 1e-5))
        judge(f"another bias {n}", (x, weight, torch.randn(n).to(dtype), 1e-6))
        bias.data.copy_(torch.randn(n))
        judge(f"by .data {n}", (x, weight, bias, 1e-3))
        weight[n // 2] = 5.0
        judge(f"in place {n}", (x, weight, bias, 1e-5))
        judge(f"zeros {n}", (x, torch.zeros(n).to(dtype), bias, 1e-5))
x, weight, bias = 100 + torch.randn(5, 8, 129), torch.randn(129), torch.randn(129)
weight[3] = float("nan")
judge("NaN in the weight", (x, weight, bias, 1e-5))
judge("strides", (torch.randn(64, 40).T, torch.randn(128)[::2], torch.randn(1).expand(64), 1e-5))
judge("equal", (torch.full((4, 64), 3.0), torch.ones(64), torch.ones(64), 1e-5))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
