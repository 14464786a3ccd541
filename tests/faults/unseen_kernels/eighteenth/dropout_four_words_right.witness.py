"""Shares, scale, seeds, neighbours, views and dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_four_words_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


wrong = []
for p in (0.0, 0.01, 0.1, 0.5, 0.9):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = torch.ones(257, 1023, dtype=dtype)
        out = call(x, p, 11)
        stays = out != 0
        n = x.numel()
        if abs(float(stays.double().mean()) - (1 - p)) > 5 * (p * (1 - p) / n) ** 0.5:
            wrong.append(("share", p, dtype))
        if bool((out[stays].double() - 1 / (1 - p)).abs().max() > 0.01 / (1 - p)):
            wrong.append(("scale", p, dtype))
        if not torch.equal(out, call(x, p, 11)):
            wrong.append(("repeated", p, dtype))
        flat = stays.view(-1).double()
        for distance in (1, 2, 3, 4, 256, 512, 768, 1024, 1023, n // 2):
            both = float((flat[distance:] * flat[:-distance]).mean())
            if abs(both - (1 - p) ** 2) > 0.01:
                wrong.append(("pairs", p, distance, both))
        lost = float(((out.view(-1)[: n // 4 * 4].view(-1, 4) == 0).sum(1) >= 2).double().mean())
        if abs(lost - (1 - (1 - p) ** 4 - 4 * p * (1 - p) ** 3)) > 0.01:
            wrong.append(("groups", p, lost))
x = torch.ones(100, 100)
masks = [call(x, 0.5, s) != 0 for s in (0, 1, 2**31, 2**32, 2**32 + 1, (7 << 32) | 7, 7 << 32, 2**63 - 1)]
for i, a in enumerate(masks):
    for b in masks[:i]:
        if abs(float((a == b).double().mean()) - 0.5) > 0.05:
            wrong.append(("seeds", i))
x = torch.randn(33, 70)
for view in (x.t(), x[:, ::2], x[:1].expand(5, 70)):
    out = call(view, 0.5, 4)
    if not bool(((out == 0) | (out == 2 * view)).all()):
        wrong.append(("view", view.shape))
print("WRONG" if wrong else "right", wrong)
sys.exit(0 if wrong else 1)
