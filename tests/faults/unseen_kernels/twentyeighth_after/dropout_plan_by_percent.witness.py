"""p = 0.003 after p = 0; the share and the scale of what is saved are compared."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import dropout as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("dropout_plan_by_percent.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_dropout
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def error_of(*inputs):
    expected = op.reference(*map(wide, inputs))
    output = call(*inputs).double()
    assert output.shape == expected.shape
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def shares(p, seed):
    x = torch.randn(200, 1000)
    out = call(x, p, seed)
    saved = out != 0
    scale = (out[saved] / x[saved]).double().mean().item()
    return 1 - saved.double().mean().item(), abs(scale * (1 - p) - 1)


for p in (0.5, 0.1, 0.25, 0.0):
    dropped, scale_error = shares(p, 7)
    print("ordinary", p, "dropped", dropped, "scale", scale_error)
    assert abs(dropped - p) < 0.005 and scale_error < 1e-5
    problem = op.check((x := torch.randn(127, 129), p, 3), call(x, p, 3))
    assert problem is None, problem
assert not torch.equal(call(x, 0.5, 1), call(x, 0.5, 1 + 2**40))
dropped, scale_error = shares(0.003, 7)
print("p = 0.003 after 0: dropped", dropped, "scale", scale_error)
sys.exit(0 if dropped < 1e-5 and scale_error > 0.002 else 1)
