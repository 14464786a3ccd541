"""Groups, lengths, dtypes, both masks; one with too many rows for the reciprocal."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import gqa as op

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("gqa_reciprocal.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_gqa
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return op.reference(*map(wide, inputs))


def difference(output, expected):
    assert output.shape == expected.shape
    output = output.double()
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def finish(ordinary, error):
    print("ordinary", ordinary)
    print("WRONG" if error > 0.02 else "right", "error", error, "of the largest value")
    sys.exit(0 if error > 0.02 and max(ordinary) < 0.01 else 1)


g = torch.Generator().manual_seed(0)
limit = {torch.float32: 4e-6, torch.float16: 4e-3}
errors = []
for shape in ((1, 1, 1, 1, 64), (1, 2, 1, 7, 64), (1, 6, 2, 127, 64), (2, 6, 3, 65, 96), (1, 33, 1, 40, 16), (2, 14, 2, 130, 16), (1, 4, 4, 70, 80)):
    for dtype in limit:
        q, k, v, _ = op.make_inputs(shape, dtype, torch.device("cpu"), g)
        for causal in (False, True):
            errors.append((error_of(q, k, v, causal), dtype))
q, k, v, _ = op.make_inputs((1, 15, 1, 400, 16), torch.float16, torch.device("cpu"), g)
errors.append((error_of(q.transpose(2, 3).contiguous().transpose(2, 3), k, v, True), torch.float16))
for group in range(1, 300):  # the division by itself, as the host chooses it
    reciprocal = -(-(2**20) // group)
    e = reciprocal * group - 2**20
    rows = torch.arange(min(200_000, (2**20 - 1) // e + 1 if e else 200_000))
    assert ((rows * reciprocal >> 20) == rows // group).all(), group
worst = max(error / limit[dtype] for error, dtype in errors)
print(len(errors), "inputs, worst", worst, "of the limit")
sys.exit(0 if worst < 1 and len(errors) >= 24 else 1)
