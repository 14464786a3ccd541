"""head_dim 16 to 256, causal and not, sequences around the tiles, dtypes."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_wide_tiles_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return gqa.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = []
for batch, heads, kv, seq, dim in (
    (1, 1, 1, 1, 64), (2, 2, 1, 7, 64), (1, 6, 2, 127, 64), (2, 6, 3, 65, 96), (1, 3, 1, 129, 128), (1, 8, 2, 33, 80),
    (1, 2, 1, 96, 128), (1, 2, 1, 100, 160), (1, 2, 2, 80, 192), (1, 2, 1, 17, 256), (1, 2, 1, 48, 256), (2, 2, 1, 96, 160),
    (3, 4, 4, 70, 16),
):
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        q, k, v = (torch.randn(batch, n, seq, dim).to(dtype) for n in (heads, kv, kv))
        cases += [(q, k, v, False), (q, k, v, True)]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed[inputs[0].dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
