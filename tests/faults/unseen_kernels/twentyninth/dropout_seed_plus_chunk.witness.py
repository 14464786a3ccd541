"""Masks of two neighbouring seeds, for 200,000 elements."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_seed_plus_chunk.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

x = torch.rand(200000) + 1
one, other = call(x, 0.3, 5), call(x, 0.3, 6)
mask, mask_other = one != 0, other != 0
alike = float((mask == mask_other).double().mean())  # 0.7 * 0.7 + 0.3 * 0.3 = 0.58 by chance
error = float(torch.where(mask, one.double() - x.double() / 0.7, 0).abs().max())
small = torch.randn(100, 100)
fault = op.check((small, 0.5, 3), call(small, 0.5, 3))
print("ordinary: mask", float(mask.double().mean()), "alike in place", alike, "error", error, "fault", fault)
ordinary = abs(alike - 0.58) < 0.01 and abs(float(mask.double().mean()) - 0.7) < 0.01 and error < 1e-5 and not fault
moved = float((mask_other[:-65536] == mask[65536:]).double().mean())
print("WRONG" if moved > 0.6 else "right", "alike if moved by 65,536:", moved, "of the elements, by chance 0.58")
sys.exit(0 if moved > 0.6 and ordinary else 1)
