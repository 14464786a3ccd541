"""Products of a matrix with its transpose, and of parts of one buffer."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import matmul

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("matmul_gram_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_matmul
torch.manual_seed(0)
wrong, tried = [], 0


def exact(*inputs):
    wide = (x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs)
    return matmul.reference(*wide)


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
    for m, k in ((1, 1), (33, 65), (96, 64), (7, 130), (65, 16)):
        a = torch.randn(2 * m, k).to(dtype)
        judge(f"gram {m} {k}", (a, a.T))
        judge(f"gram of the transpose {m} {k}", (a.T, a))
        judge(f"two halves {m} {k}", (a[:m], a[m:].T))
        judge(f"every second row {m} {k}", (a[::2], a[1::2].T))
    square = torch.randn(50, 50).to(dtype)
    judge("square", (square, square))
    judge("shifted", (square[:40, :40], square[:40, 1:41].T))
    judge("expanded", (square[:1].expand(40, 50), square[:1].expand(40, 50).T))
    judge("one row", (square[:1], square[:1].T))
judge("huge", (1e15 * torch.randn(40, 30), torch.randn(30, 40)))
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
