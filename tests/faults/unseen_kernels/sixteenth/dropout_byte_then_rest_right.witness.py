"""Shares for several p and seeds, independence of neighbours, rows and seeds, the scale."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_byte_then_rest_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

wrong = []
for p in (0.0, 0.001, 1 / 256, 0.0123, 0.5, 0.999):
    for seed in (1, 2**63 - 1):
        out = call(torch.full((15, 1023), 3.0), p, seed)
        same = call(torch.full((15, 1023), 3.0), p, seed)
        n = out.numel()
        mask = (out != 0).double()
        if not torch.equal(out, same) or not torch.allclose(out[out != 0], torch.tensor(3.0 / (1 - p))):
            wrong.append((p, seed, "scale or repetition"))
        if abs(float(mask.sum()) - n * (1 - p)) > 5 * (n * p * (1 - p)) ** 0.5:
            wrong.append((p, seed, "share", float(mask.mean())))
        z = (mask - (1 - p)).flatten()
        for lag in (1, 2, 3, 4, 8, 256, 1023, 1024, n // 2):
            if p and abs(float((z[lag:] * z[:-lag]).sum())) > 5.5 * p * (1 - p) * (n - lag) ** 0.5:
                wrong.append((p, seed, "lag", lag))
masks = [call(torch.ones(16, 1024), 0.5, seed) != 0 for seed in (0, 1, 2, 2**32, 2**32 + 1, 2**62)]
for i in range(6):
    for j in range(i):
        if abs(float((masks[i] == masks[j]).double().mean()) - 0.5) > 0.02:
            wrong.append(("seeds", i, j))
print("WRONG" if wrong else "right", wrong)
sys.exit(0 if wrong else 1)
