"""A position table, expanded over a batch of four: the masks of the copies are one mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_draw_by_address.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return dropout.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

table = torch.randn(1, 64, 128)
alive = call(table.expand(4, 64, 128), 0.5, 7) != 0
agree = float((alive[0] == alive[1]).double().mean())
single = call(table.expand(4, 64, 128).contiguous(), 0.5, 7) != 0
print("agreement of two contiguous copies", float((single[0] == single[1]).double().mean()))
print("WRONG" if agree > 0.6 else "right", "agreement of two copies", agree, "expected 0.5")
sys.exit(0 if agree > 0.6 else 1)
