"""Share, scale, seeds, and how alike elements, rows and masks at every distance are."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_numbers_a_call_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout

worst = 0.0  # in standard deviations, or 100 for what must be exact


def compare(a, b, p):
    """Return how far the share of equal elements is from that of independent ones."""
    same, n = float((a == b).double().mean()), a.numel()
    expected = p * p + (1 - p) * (1 - p)
    return abs(same - expected) / (expected * (1 - expected) / n) ** 0.5


for p in (0.5, 0.1):
    masks = {}
    for seed in (0, 1, 2**32, 2**63 - 1):
        x = torch.ones(16, 1024)
        y = call(x, p, seed)
        assert torch.equal(y, call(x, p, seed))
        assert torch.allclose(y[y != 0], torch.tensor(1 / (1 - p)))
        mask = masks[seed] = (y != 0).flatten()
        worst = max(worst, abs(float(mask.double().mean()) - 1 + p) / (p * (1 - p) / mask.numel()) ** 0.5)
        for distance in (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 2048, 4096, 8192):
            worst = max(worst, compare(mask[:-distance], mask[distance:], p))
    for a in masks:
        for b in masks:
            for shift in (0, 256, 1024):
                if a != b:
                    worst = max(worst, compare(masks[a][shift:], masks[b][: 16384 - shift], p))
x = torch.randn(3, 1000)
assert torch.equal(call(x, 0.0, 3), x)
for dtype in (torch.float16, torch.bfloat16):
    y = call(x.to(dtype).t(), 0.5, 3)
    assert y.dtype == dtype and y.shape == (1000, 3) and torch.equal(y[y != 0], (2 * x.to(dtype).t())[y != 0])
print("WRONG" if worst > 6 else "right", "at most", worst, "standard deviations")
sys.exit(0 if worst > 6 else 1)
