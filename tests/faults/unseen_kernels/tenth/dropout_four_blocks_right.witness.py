"""Rate, scale and seed of masks of several shapes, types and probabilities; seeds near by, also moved."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_blocks_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)
wrong, tried = [], 0


def expect(label, holds):
    global tried
    tried += 1
    if not holds:
        wrong.append(label)


for dtype in (torch.float32, torch.float16):
    for shape in ((1,), (7, 13), (2, 3, 129), (1025,), (64, 300)):
        for p in (0.5, 0.1, 0.0):
            x = torch.randn(shape).to(dtype)
            x[x == 0] = 1.0
            out = call(x, p, 11)
            saved = out != 0
            scaled = (x.double() / (1 - p)).to(dtype)
            near = torch.isclose(out.double(), scaled.double(), rtol=2e-3, atol=0) | ~saved
            spread = 5 * (p * (1 - p) / x.numel()) ** 0.5 + 1e-9
            expect(f"scale {shape} {p}", bool(near.all()))
            expect(f"rate {shape} {p}", abs(float(saved.double().mean()) - (1 - p)) <= spread)
            expect(f"same seed {shape} {p}", torch.equal(out, call(x, p, 11)))
x = torch.randn(40, 200).T + 9.0
expect("transposed", bool(((call(x, 0.5, 3) == 0) | torch.isclose(call(x, 0.5, 3), 2 * x)).all()))
x = torch.ones(16_384)
base = call(x, 0.5, 7) != 0
for seed in (6, 8, 9, 7 ^ 2**20, 2**31 - 2):
    other = call(x, 0.5, seed) != 0
    for move in (0, 1, 256, 512, 768, 1024, 2048):
        same = float((base[move:] == other[: 16_384 - move]).double().mean())
        expect(f"seed {seed} moved by {move}", abs(same - 0.5) < 0.03)
for move in (1, 256, 512, 1024):
    same = float((base[move:] == base[:-move]).double().mean())
    expect(f"moved by {move}", abs(same - 0.5) < 0.03)
print("WRONG" if wrong else "right", tried, "tried", *wrong)
sys.exit(0 if wrong else 1)
