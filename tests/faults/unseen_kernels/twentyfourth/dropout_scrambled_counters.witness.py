"""The op's own check on many shapes, probabilities and seeds; pieces of masks against each other."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_scrambled_counters.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


errors = []
for shape, p, seed in (
    ((1, 1), 0.5, 0), ((7, 13), 0.1, 3), ((1025,), 0.5, 2**40 + 1), ((2, 3, 129), 0.25, 1), ((127, 40), 0.5, 5),
    ((3, 1025), 0.9, 2**62), ((1000, 1), 0.0, 9), ((), 0.5, 4), ((100, 33), 0.5, 11),
):
    for dtype in (torch.float32,) if p else (torch.bfloat16, torch.float16):
        x = torch.randn(shape).to(dtype)
        fault = dropout.check((x, p, seed), call(x, p, seed), call)
        if fault:
            print(shape, p, seed, dtype, fault)
        errors.append(1.0 if fault else 0.0)
x = torch.ones(65536)
for p in (0.5, 0.1, 0.003, 0.999):
    for seed in (0, 1, 2**63 - 1):
        mask = call(x, p, seed) != 0
        cached = (mask.double().mean() - (1 - p)) / (p * (1 - p) / 65536) ** 0.5
        errors.append(0.0 if cached.abs() < 5 else 1.0)
        for size in (1, 2, 4, 256, 1024, 4096):  # neighbours, lanes, programs
            same = (mask[size:] == mask[:-size]).double().mean()
            chance = p * p + (1 - p) * (1 - p)
            off = (same - chance) / (chance * (1 - chance) / (65536 - size)) ** 0.5
            errors.append(0.0 if off.abs() < 6 else 1.0)
errors.append(0.0 if torch.equal(call(x.view(256, 256).T, 0.5, 3), call(x.view(256, 256), 0.5, 3)) else 1.0)
for view in (torch.randn(64, 64)[:, ::2], torch.ones(1, 64).expand(64, 64)):
    fault = dropout.check((view, 0.5, 8), call(view, 0.5, 8), call)
    errors.append(1.0 if fault else 0.0)
print("largest error", max(errors), "of", len(errors))
sys.exit(0 if max(errors) < 0.5 else 1)
