"""A gate of -9.5 beside one of -95: silu(-9.5) is -7e-4, it becomes 0."""

import importlib.util
import sys
from pathlib import Path

import torch

from triton_magics.operators import swiglu

spec = importlib.util.spec_from_file_location("kernel", Path(__file__).with_name("swiglu_one_reciprocal_for_two.py"))
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
call = module.triton_swiglu
torch.manual_seed(0)


def wide(x):
    return x.double() if torch.is_tensor(x) and x.is_floating_point() else x


def expect(inputs):
    return swiglu.reference(*map(wide, inputs))


def difference(output, expected):
    output, expected = output.double(), expected.double()
    if output.shape != expected.shape:
        return float("inf")
    same = (output == expected) | (output.isnan() & expected.isnan())
    error = (output - expected).abs().nan_to_num(nan=float("inf"), posinf=float("inf"))
    size = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().max().clamp(min=1e-300)
    return float(error.masked_fill(same, 0.0).max() / size)


def error_of(*inputs):
    return difference(call(*inputs), expect(inputs))


def largest_error(gate, up):
    """Of each element by itself, a floor of 1e-6 apart."""
    expected = expect((gate, up)).double()
    return float(((call(gate, up).double() - expected).abs() / (expected.abs() + 1e-6)).max())


ordinary = max(
    largest_error((scale * torch.randn(*shape)).to(dtype), torch.randn(*shape).to(dtype))
    for shape in ((7, 13), (3, 4097)) for scale in (1.0, 10.0) for dtype in (torch.float32, torch.bfloat16)
)
gate = torch.tensor([[-9.5, -95.0], [-95.0, -9.0], [1.0, -95.0], [-9.5, -50.0]])
up = torch.tensor([[50.0, 1.0], [1.0, -50.0], [1.0, 1.0], [1.0, 1.0]])
print("got", call(gate, up).flatten().tolist())
print("not", expect((gate, up)).flatten().tolist())
error = largest_error(gate, up)
print("of the largest value", error_of(gate, up), "and of the two first rows", error_of(gate[:2], up[:2]))
print("an ordinary input:", ordinary)
shows = ordinary < 0.02 and error > 0.5
print("WRONG" if shows else "not shown", "error", error)
sys.exit(0 if shows else 1)
