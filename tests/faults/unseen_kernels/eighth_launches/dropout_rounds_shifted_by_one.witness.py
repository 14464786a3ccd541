"""Over 1,048,576 elements each of 256 programs takes several blocks, and the later ones repeat the mask of the first, shifted by one element a round."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_rounds_shifted_by_one.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

inputs = torch.randn(1300, 1000), 0.5, 7
output = call(*inputs)
x, p, seed = inputs
saved = (output != 0).flatten()
lag = 1024 * 1024 - 1
agree = float((saved[:-lag] == saved[lag:]).double()[1:].mean())
chance = p * p + (1 - p) * (1 - p)
print("WRONG" if agree > chance + 0.1 else "right", "agreement", agree, "by chance", chance)
sys.exit(0 if agree > chance + 0.1 else 1)
