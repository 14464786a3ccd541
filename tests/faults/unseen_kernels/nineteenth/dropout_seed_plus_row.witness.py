"""Rows of the masks of two seeds that follow one another."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_seed_plus_row.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout

a, b = (call(torch.ones(128, 512), 0.5, seed) != 0 for seed in (10, 11))
alike = float((a[1:] == b[:-1]).double().mean())
print("WRONG" if abs(alike - 0.5) > 0.05 else "right", "alike", alike, "where 0.5 is independent")
sys.exit(0 if abs(alike - 0.5) > 0.05 else 1)
