"""Halves of the mask at p = 0.5: of independent masks half of the elements agree."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_antithetic_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

output = call(torch.ones(64, 256), 0.5, 7).flatten() != 0
first, second = output.chunk(2)
share = float((first == second).double().mean())
print("WRONG" if abs(share - 0.5) > 0.05 else "right", "share of agreement of the halves", share)
sys.exit(0 if abs(share - 0.5) > 0.05 else 1)
