"""Keys [batch, d, seq, heads] in memory, and one key expanded over all positions."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa as op

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_keys_by_columns.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
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

def draw(b, h, hk, s, d, dtype=torch.float32):
    return [torch.randn(b, n, s, d).to(dtype) for n in (h, hk, hk)]


ordinary = max(difference((*draw(*s, dtype=d), c)) for s in ((1, 4, 2, 65, 64), (2, 3, 1, 33, 80)) for d in
               (torch.float32, torch.float16) for c in (False, True))
q, k, v = draw(2, 4, 2, 40, 32)
cache = k.transpose(2, 3).contiguous().transpose(2, 3)
tokens = k.transpose(1, 2).contiguous().transpose(1, 2)
ordinary = max(ordinary, *(difference((q, x, v, False)) for x in (cache, tokens, k.repeat(1, 1, 1, 2)[..., ::2])))
inner = k.permute(0, 3, 2, 1).contiguous().permute(0, 3, 2, 1)
one = k[:, :, :1].expand_as(k)
errors = [difference((q, x, v, False)) for x in (inner, one)]
print("heads innermost:", errors[0], "expanded:", errors[1])
error = min(errors)

print("ordinary:", ordinary, "fault:", error, "of the largest value")
shows = ordinary < 0.01 and error > 0.1
print("WRONG" if shows else "not shown")
sys.exit(0 if shows else 1)
