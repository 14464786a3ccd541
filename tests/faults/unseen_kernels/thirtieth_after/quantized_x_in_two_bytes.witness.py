"""Float16: row 3 of 16 is 20,000 times as large as the others."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import quantized_matmul as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("quantized_x_in_two_bytes.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_quantized_matmul
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def difference(inputs, rows=None):
    """Return the largest error, of the largest expected value; of the rows given."""
    output, expected = call(*inputs).double(), op.reference(*map(wide, inputs)).double()
    assert output.shape == expected.shape
    if rows is not None:
        output, expected = output[rows], expected[rows]
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

def draw(m, n, k, dtype):
    x, w = torch.randn(m, k), torch.randint(-127, 128, (n, k), dtype=torch.int8)
    return [x.to(dtype), w, ((torch.rand(n) + 0.5) / 127).to(dtype)]


ordinary = max(difference(draw(*s, d)) for s in ((16, 64, 256), (7, 5, 13), (33, 40, 129)) for d in
               (torch.float16, torch.bfloat16, torch.float32))
inputs = draw(16, 64, 256, torch.float16)
inputs[0] *= 0.01
inputs[0][3] *= 20000
error = difference(inputs, [i for i in range(16) if i != 3])

print("ordinary:", ordinary, "fault:", error, "of the largest value")
shows = ordinary < 0.006 and error > 0.1
print("WRONG" if shows else "not shown")
sys.exit(0 if shows else 1)
