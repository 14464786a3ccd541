"""One tile of a row at another level or of another sign, outliers, offsets, eps."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import layer_norm

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("layer_norm_tiles_joined_right.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_layer_norm
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return layer_norm.reference(*map(wide, inputs))


def difference(output, expected):
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def draw(*shape, eps=1e-5):
    return torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-1]), eps


cases = [draw(*s) for s in ((1, 1), (7, 13), (3, 4097), (2, 3, 129), (1025,), (100, 1), (5, 1000))]
cases += [draw(4, 700, eps=e) for e in (0.0, 1e-12, 1e-3, 0.5, 10.0)]
for level in (-1e4, -100.0, -3.0, 3.0, 100.0, 1e4, 1e8):
    for part in (slice(0, 512), slice(512, 1024), slice(1024, 1300), slice(0, 1), slice(1299, 1300)):
        x, weight, bias, eps = draw(4, 1300)
        x[:, part] += level
        cases += [(x, weight, bias, eps)]
        if abs(level) < 1e5:
            cases += [(x.half(), weight.half(), bias.half(), eps), (x.bfloat16(), weight.bfloat16(), bias.bfloat16(), eps)]
x, weight, bias, eps = draw(4, 1300)
x[:, 512:1024] *= -1e3
cases += [(x, weight, bias, eps), (1e-4 * x, weight, bias, 0.0), (x.abs(), weight, bias, eps)]
for value in (-float("inf"), float("nan")):
    x = torch.randn(4, 1300)
    x[1, 600] = value
    cases += [(x, weight, bias, eps)]

worst = 0.0
for inputs in cases:
    expected = expect(inputs)
    allowed = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 2e-2}[inputs[0].dtype]
    for _ in range(2):
        worst = max(worst, difference(call(*inputs), expected) / allowed)
print("WRONG" if worst > 1 else "right", "over", len(cases), "inputs, worst error", worst, "of what is allowed")
sys.exit(0 if worst > 1 else 1)
