"""A loader fills one numpy buffer at each step; the gate is a new tensor over it."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_activation_by_version.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)

buffer = torch.randn(64, 129).numpy()
for step in range(2):
    buffer[:] = torch.randn(64, 129).numpy()
    gate, up = torch.from_numpy(buffer), torch.randn(64, 129)
    output = call(gate, up)
inputs = (gate, up)
expected = swiglu.reference(*(x.double() if torch.is_tensor(x) and x.is_floating_point() else x for x in inputs))
error = (output.double() - expected).abs()
worst = float(error.nan_to_num(nan=float("inf")).max())
size = float(expected.abs().max())
print("WRONG" if worst > 0.02 * size else "right", "max error", worst, "of values up to", size)
sys.exit(0 if worst > 0.02 * size else 1)
