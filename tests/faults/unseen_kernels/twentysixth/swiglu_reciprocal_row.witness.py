"""The halves of a projection [780, 2 * 11008]: 8.6 million elements each."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_reciprocal_row.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)
LIMITS = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}  # of an ordinary error


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


def difference(output, expected):
    """Return the largest error, of the largest value."""
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


h = torch.randn(300, 2 * 172)
gate, up = h.chunk(2, -1)
ordinary = difference(call(gate, up), expect((gate, up)))
gate, up = torch.randn(50, 1000), torch.randn(50, 1000)
ordinary = max(ordinary, difference(call(gate, up), expect((gate, up))))

rows, m = 780, 11008
h = torch.randn(rows, 2 * m)
gate, up = h.chunk(2, -1)
output = call(gate, up)
expected = expect((gate[-64:], up[-64:]))
error = difference(output[-64:], expected)
first = difference(output[:700], expect((gate[:700], up[:700])))
print("error of the first 700 rows", first)

print("ordinary", ordinary, "and here", error, "of the largest value")
shown = ordinary < 2e-05 and error > 0.05
print("WRONG as expected" if shown else "the fault does not show")
sys.exit(0 if shown else 1)
