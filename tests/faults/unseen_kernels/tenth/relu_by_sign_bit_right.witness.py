"""NaNs of both signs, infinities, zeros, tiny and huge numbers."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import relu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("relu_by_sign_bit_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_relu
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return relu.reference(*wide)


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


nan, inf = float("nan"), float("inf")
for dtype in (torch.float32, torch.float16):
    limits = torch.finfo(dtype)
    special = torch.tensor(
        [nan, inf, -inf, 0.0, -0.0, limits.max, limits.min, limits.tiny, -limits.tiny, limits.tiny / 8, 1.0, -1.0]
    ).to(dtype)
    judge("special", (special,))
    judge("special, signs turned", (-special,))
    for shape in ((1,), (7, 13), (2, 3, 129), (1025,), (33, 257)):
        judge(f"{shape}", (torch.randn(shape).to(dtype),))
        judge(f"times 100 {shape}", (100 * torch.randn(shape).to(dtype),))
    judge("transposed", (torch.randn(33, 65).to(dtype).T,))
    judge("expanded", (torch.randn(33, 1).to(dtype).expand(33, 4),))
    judge("unaligned", (torch.randn(1000).to(dtype)[1::3],))
zeros = torch.zeros(40)
judge("0 / 0", (zeros / zeros,))
judge("inf - inf", (-((zeros + inf) - (zeros + inf)),))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
