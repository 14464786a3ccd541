"""Seeds with equal halves, and seeds with swapped halves."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_folded_seed.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


x = torch.ones(100, 100)
pairs = ((0, (7 << 32) | 7), (5, 5 << 32), ((3 << 32) | 9, (9 << 32) | 3), (0, 2**32 + 1))
same = sum(torch.equal(call(x, 0.5, a), call(x, 0.5, b)) for a, b in pairs)
print("WRONG" if same else "right", same, "of", len(pairs), "pairs of different seeds give the same mask")
sys.exit(0 if same else 1)
