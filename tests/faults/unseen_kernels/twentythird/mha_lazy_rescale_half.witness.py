"""float16; a later key has a score 12.5 above the earlier ones."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import mha

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("mha_lazy_rescale_half.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_mha
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return mha.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


q, k, v = (torch.randn(1, 2, 100, 64).half() for _ in range(3))
usual = max(difference(call(q, k, v, c), expect((q, k, v, c))) for c in (False, True))
k *= 0.05
k[:, :, 70] = q[:, :, 3] * (12.5 * 8 / q[:, :, 3].float().square().sum(-1, keepdim=True)).half()
inputs = (q, k, v, False)
error = difference(call(*inputs), expect(inputs))
x = [t.float() for t in inputs[:3]]
print("float32 of the same:", difference(call(*x), expect(x)))

print("ordinary input: error", usual, "of the largest value")
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if usual < 0.002 and error > 0.02 else 1)
