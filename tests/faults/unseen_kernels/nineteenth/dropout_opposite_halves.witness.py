"""Elements half a block apart should be dropped alike half of the time at p = 0.5."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_opposite_halves.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout

masks = torch.cat([(call(torch.ones(64, 1024), 0.5, seed) != 0) for seed in (1, 2)])
worst = 0.0
for distance in (512,):
    alike = float((masks[:, :-distance] == masks[:, distance:]).double().mean())
    worst = max(worst, abs(alike - 0.5))
print("WRONG" if worst > 0.05 else "right", "alike", 0.5 + worst, "or", 0.5 - worst, "share", float(masks.double().mean()))
sys.exit(0 if worst > 0.05 else 1)
