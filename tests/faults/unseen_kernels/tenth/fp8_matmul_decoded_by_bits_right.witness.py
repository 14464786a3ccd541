"""Every byte but NaN, subnormal numbers, zeros, odd shapes and strides."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import fp8_matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("fp8_matmul_decoded_by_bits_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_fp8_matmul
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return fp8_matmul.reference(*wide)


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


def scales(m, n):
    return (torch.rand(m) / 64).half(), (torch.rand(n) / 64).half()


for m, n, k in ((1, 1, 1), (7, 5, 13), (33, 40, 65), (20, 24, 96), (65, 2, 257)):
    for size in (64.0, 1.0, 0.005):
        a, b = ((size * torch.randn(r, k)).clamp(-448, 448).to(torch.float8_e4m3fn) for r in (m, n))
        scale_a, scale_b = scales(m, n)
        judge(f"{m} {n} {k} {size}", (a, b, (scale_a / size * 8).half(), scale_b))
numbers = [i for i in range(256) if i & 0x7F != 0x7F]
row = torch.tensor(numbers, dtype=torch.uint8).view(torch.float8_e4m3fn)
one = torch.zeros(254, 254).fill_diagonal_(1.0).to(torch.float8_e4m3fn)
ones = torch.ones(1).half(), torch.ones(254).half()
judge("every byte", (row[None], one, *ones))
judge("zeros", (torch.zeros(9, 32).to(torch.float8_e4m3fn), one[:5, :32], *scales(9, 5)))
a = (64 * torch.randn(32, 40)).clamp(-448, 448).to(torch.float8_e4m3fn)
judge("transposed", (a.T, a.T[:7], *scales(40, 7)))
judge("strides", (a[::2], a[1::3], *(torch.rand(64).half()[::4] / 64, torch.rand(11).half() / 64)))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
