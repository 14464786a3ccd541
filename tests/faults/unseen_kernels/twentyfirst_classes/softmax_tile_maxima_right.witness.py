"""One tile of a row far above or below the others, in every place, also infinite ones."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import softmax

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("softmax_tile_maxima_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_softmax
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return softmax.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


cases = [(torch.randn(s),) for s in ((1, 1), (7, 13), (3, 4097), (2, 3, 129), (1025,), (100, 1), (5, 1000))]
for level in (-1e30, -1e4, -100.0, -30.0, 30.0, 88.0, 100.0, 1e4):
    for part in (slice(0, 512), slice(512, 1024), slice(1024, 1300), slice(0, 1), slice(1299, 1300), slice(511, 513)):
        x = torch.randn(4, 1300)
        x[:, part] += level
        cases += [(x,), (x.clamp(-6e4, 6e4).half(),), (x.bfloat16(),)]
for value in (-float("inf"), float("inf"), float("nan")):
    for part in (slice(0, 512), slice(512, 1300), slice(0, 1300), slice(700, 701), slice(1299, 1300)):
        x = torch.randn(4, 1300)
        x[1:3, part] = value
        cases += [(x,)]
cases += [(torch.randn(600, 3).t(),), (torch.randn(1, 600).expand(4, 600),)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
