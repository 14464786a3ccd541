"""Four million elements with p = 1e-5, of which some 40 should be dropped."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_sixteen_bits_an_element.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)

n = 2000 * 2048
x = torch.ones(2000, 2048)
dropped = int((call(x, 1e-5, 7) == 0).sum())
wrong = not 10 <= dropped <= 90
few = call(x, 0.999999, 7)
left = int((few != 0).sum())
wrong = wrong or not left <= 20
print("WRONG" if wrong else "right", dropped, "dropped, should be about", n * 1e-5, "and", left, "left, should be about", n * 1e-6)
sys.exit(0 if wrong else 1)
