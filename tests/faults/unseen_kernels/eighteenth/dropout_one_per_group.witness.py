"""Shows how many groups of four lose two elements or more, at p = 0.1."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_one_per_group.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


out = call(torch.ones(64, 1024), 0.1, 3)
lost = (out.view(-1, 4) == 0).sum(1)
share = float((lost >= 2).double().mean())
expected = 1 - 0.9**4 - 4 * 0.1 * 0.9**3
wrong = abs(share - expected) > 0.01
print("WRONG" if wrong else "right", "share of groups that lose two or more:", share, "instead of", expected)
print("share of all elements that are lost:", float((out == 0).double().mean()))
sys.exit(0 if wrong else 1)
