"""Rows of 2048: a row's second half and the next one's first."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_wide_row_offsets.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

x = torch.ones(16, 2048)
mask = call(x, 0.5, 7) != 0
same = float((mask[:-1, 1024:] == mask[1:, :1024]).float().mean())
print("WRONG" if same > 0.6 else "right", "share of equal places of two parts of the mask", same, "should be 0.5")
sys.exit(0 if same > 0.6 else 1)
