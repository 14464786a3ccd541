"""Few rows and over 2,048 classes: a part's length is no multiple of the tile, so that its last tile counts classes of the next part."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import linear_cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("linear_cross_entropy_few_rows_many_classes.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_linear_cross_entropy
torch.manual_seed(0)

inputs = torch.randn(8, 16), torch.randn(2500, 16) / 4, torch.randint(2500, (8,))
output = call(*inputs)
expected = linear_cross_entropy.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
