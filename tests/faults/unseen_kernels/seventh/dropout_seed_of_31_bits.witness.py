"""Seeds of the form step * 2**32 + layer: all steps give one mask."""

import importlib.util
import sys
from pathlib import Path

import torch

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_seed_of_31_bits.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)

x = torch.ones(64, 128)
masks = torch.stack([module.triton_dropout(x, 0.5, (step << 32) + 3) != 0 for step in range(4)])
same = float((masks[1:] == masks[0]).double().mean())  # 0.5 expected of independent masks
print("WRONG" if same > 0.6 else "right", "max error", same - 0.5, f"({same:.0%} of the mask agree, should be 50%)")
sys.exit(0 if same > 0.6 else 1)
