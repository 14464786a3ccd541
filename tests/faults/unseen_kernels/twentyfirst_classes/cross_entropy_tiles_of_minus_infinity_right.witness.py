"""Infinities and NaN in the first tile, another one, all of them, at the target and elsewhere."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import cross_entropy

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("cross_entropy_tiles_of_minus_infinity_right.py"))
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


def draw(rows, classes, low=0):
    return torch.randn(rows, classes), torch.randint(low, classes, (rows,))


cases = [draw(*s) for s in ((1, 1), (7, 13), (3, 4097), (127, 129), (1000, 1), (1025, 2))]
for value in (-float("inf"), float("inf"), float("nan"), -1e30, -50.0, 50.0):
    for part in (slice(0, 512), slice(0, 1024), slice(512, 1024), slice(1024, 1300), slice(0, 1300), slice(1299, 1300), slice(3, 4)):
        for low in (0, 1100):
            logits, target = draw(4, 1300, low)
            logits[1:3, part] = value
            cases += [(logits, target)]
            logits, target = draw(1, 1300, low)
            logits[:, part] = value
            cases += [(logits.bfloat16(), target), (logits.clone(), torch.full((1,), part.start))]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
