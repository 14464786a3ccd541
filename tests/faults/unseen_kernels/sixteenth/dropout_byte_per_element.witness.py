"""Dropped elements of 262144 at p = 0.001."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_byte_per_element.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

dropped = int((call(torch.ones(512, 512), 0.001, 7) == 0).sum())
wrong = abs(dropped - 262.144) > 5 * 262.144**0.5
print("WRONG" if wrong else "right", dropped, "are dropped of 262 expected")
sys.exit(0 if wrong else 1)
