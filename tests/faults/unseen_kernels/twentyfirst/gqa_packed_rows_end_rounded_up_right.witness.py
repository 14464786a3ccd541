"""Groups of 1 to 71 heads, short and odd lengths, with and without the mask."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_packed_rows_end_rounded_up_right.py"))
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
for b, h, n, s, d in (
    (1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 6, 2, 127, 64), (2, 6, 3, 65, 96), (1, 3, 1, 129, 128), (1, 8, 2, 33, 80),
    (3, 4, 4, 57, 16), (1, 48, 1, 35, 16), (1, 71, 1, 33, 16), (1, 40, 2, 49, 16), (2, 17, 1, 35, 8), (1, 33, 1, 2, 16),
):
    q, k, v = torch.randn(b, h, s, d), torch.randn(b, n, s, d), torch.randn(b, n, s, d)
    cases += [(q, k, v, True), (q.half(), k.half(), v.half(), True), (q.bfloat16(), k.bfloat16(), v.bfloat16(), False)]
    cases += [(q, k.transpose(2, 3).contiguous().transpose(2, 3), v[:, :1].expand_as(v), False)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    kind = next(x.dtype for x in inputs if torch.is_tensor(x) and x.is_floating_point())
    allowed = {torch.float16: 4e-3, torch.bfloat16: 2e-2}.get(kind, 5e-5)
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
