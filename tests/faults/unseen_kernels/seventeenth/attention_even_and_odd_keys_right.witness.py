"""One key, odd and even numbers of keys, views, large scores."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import attention

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("attention_even_and_odd_keys_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_attention
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return attention.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)

cases = []
for shape in ((1, 1, 1, 64), (1, 1, 2, 16), (2, 1, 7, 24), (1, 2, 64, 32), (1, 2, 65, 80), (2, 3, 130, 16)):
    q, k, v = torch.randn(3, *shape).unbind(0)
    cases += [(q, k, v), (q.half(), k.half(), v.half()), (q.bfloat16(), k.bfloat16(), v.bfloat16())]
    cases += [(30 * q, k.transpose(2, 3).contiguous().transpose(2, 3), v[:, :1].expand_as(v))]
    rising = k * torch.linspace(0, 5, shape[2])[:, None]
    cases += [(q, rising, v), (q, rising.flip(2), v), (q, 0 * k, v)]

allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}
worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    for _ in range(2):
        output = call(*inputs)
        assert output.shape == expected.shape and output.dtype == inputs[0].dtype
        worst = max(worst, difference(output, expected) / allowed[output.dtype])
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
