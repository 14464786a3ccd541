"""100 rows of 24, p = 0.5: the masks of neighbouring rows, which should agree at half of the places."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_bits_of_words.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

x = torch.rand(100, 24) + 0.5
saved = call(x, 0.5, 7) != 0
agreeing = float((saved[1:] == saved[:-1]).double().mean())
wrong = abs(agreeing - 0.5) > 0.1
print("WRONG" if wrong else "right", "neighbouring rows agree at", agreeing)
sys.exit(0 if wrong else 1)
