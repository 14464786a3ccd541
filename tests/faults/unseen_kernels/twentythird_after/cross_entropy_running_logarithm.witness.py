"""Logits that rise to 500,000 in the first quarter of a row of 65,536 and stay there."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_running_logarithm.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_cross_entropy
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return cross_entropy.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(rows, classes, size=1.0, offset=0.0, dtype=torch.float32):
    target = torch.randint(classes, (rows,))
    return (torch.randn(rows, classes) * size + offset).to(dtype), target


for arguments in (
    (7, 13), (257, 1023), (3, 65536), (127, 129, 1e4), (3, 65536, 1e4), (3, 65536, 1.0, -20000.0), (3, 65536, 1.0, 5e6),
    (127, 4097, 1.0, 0.0, torch.float16),
):
    ordinary = draw(*arguments)
    print("ordinary error", arguments, difference(call(*ordinary), expect(ordinary)))
logits, target = draw(4, 3000)
logits[0, :1000], logits[1, 2000:], logits[2, 600:1300] = (-float("inf"),) * 3
target[:] = 1500
print("blocks of -inf", difference(call(logits, target), expect((logits, target))))
logits[1, 5], logits[2, 2990] = float("nan"), float("inf")
print("NaN and Inf", [difference(call(logits[i : i + 1], target[:1]), expect((logits[i : i + 1], target[:1]))) for i in (1, 2)])

n = 65536
rise = torch.linspace(0, 4, n).clamp(max=1.0) * 5e5
inputs = (rise.expand(4, n).contiguous(), torch.tensor([n - 1, n // 2, n - 5, n // 2 + 7]))
print("torch in float32", float(cross_entropy.reference(*inputs)))
out, expected = call(*inputs), expect(inputs)
print(float(out), float(expected))
error = difference(out, expected)
print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
sys.exit(0 if error > 0.02 else 1)
