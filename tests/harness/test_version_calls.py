"""Forms of a version's entry: keyword-only parameters, autograd Functions, an imported ModelNew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.own_kit import KERNEL_HEAD, describe, validate
from tests.harness.test_imported_problems import SCALE, import_problem
from triton_magics.execution.job_refs import OpRef
from triton_magics.model import CaseStatus, Status

SHAPES = {"shapes": ((7, 13), (3, 129)), "dtypes": ("float32",)}
AFFINE = """
import torch
def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, dtype=dtype, device=device, generator=generator), 2.0, 0.5)
def reference(x, *, scale=2.0, shift=0.5): return x * scale + shift
"""
SOFTMAX = """
import torch
class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))
"""
SETUP = """
import torch
class Mul(torch.autograd.Function):
    @staticmethod
    def forward(x, y):
        return x * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x
"""
RELU = (
    KERNEL_HEAD
    + """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.where(x < 0, 0.0, x), mask=offsets < n)

class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
        return y
"""
)
MODEL_NEW = """
import torch
import torch.nn as nn
class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.WEIGHT = nn.Parameter(torch.zeros(features))

    def forward(self, x):
        return torch.relu(x) * self.WEIGHT
"""


def backward_of(name: str) -> OpRef:
    return OpRef(name=f"{name}_backward", gradient_of=name)


@pytest.mark.parametrize("parameters", ["x, *, scale, shift", "x, *, shift, scale"])
def test_keyword_only_parameters_get_the_inputs_of_their_names(parameters: str) -> None:
    source = f"def torch_own({parameters}):\n    return x * scale + shift\n"
    assert describe(AFFINE).signature == "(x, scale=2.0, shift=0.5)"
    assert validate(AFFINE, source, language="torch", **SHAPES).status is Status.PASSED
    wrong = validate(AFFINE, source.replace("+ shift", "+ scale"), language="torch", **SHAPES)
    assert wrong.failed_cases[0].status is CaseStatus.WRONG_VALUES


def test_an_autograd_function_is_a_version_of_the_op() -> None:
    assert validate(OpRef(name="softmax"), SOFTMAX, language="torch", **SHAPES).passed
    relu = validate(OpRef(name="relu"), RELU, **SHAPES)
    assert (relu.passed, relu.triton_kernels) == (True, ("kernel",))


@pytest.mark.parametrize(
    ("name", "source", "old", "new"),
    [
        ("softmax", SOFTMAX, "- (grad * y)", "- y * 0 * (grad * y)"),
        ("vector_mul", SETUP, "grad * y, grad * x", "grad * x, grad * y"),
    ],
)
@pytest.mark.in_turn
def test_forward_and_backward_of_a_function_are_judged(
    name: str, source: str, old: str, new: str
) -> None:
    op = backward_of(name)
    assert validate(op, source, language="torch", **SHAPES).passed
    wrong = validate(op, source.replace(old, new), language="torch", **SHAPES)
    assert {c.status for c in wrong.failed_cases} == {CaseStatus.WRONG_VALUES}


def test_a_function_returns_a_gradient_for_each_input() -> None:
    source = SETUP.replace("return grad * y, grad * x", "return grad * y")
    failed = validate(backward_of("vector_mul"), source, language="torch", **SHAPES)
    assert failed.error is not None
    assert "Mul.backward returns 1 values for 2 inputs" in failed.error.message


@pytest.mark.in_turn
def test_an_imported_model_gets_the_weights_of_the_reference(tmp_path: Path) -> None:
    text, _ = import_problem(tmp_path, SCALE)
    assert validate(text, MODEL_NEW.replace("WEIGHT", "scale"), language="torch").passed
    wrong = MODEL_NEW.replace("* self.WEIGHT", "+ self.WEIGHT").replace("WEIGHT", "scale")
    assert validate(text, wrong, language="torch").status is Status.FAILED
    other = validate(text, MODEL_NEW.replace("WEIGHT", "factor"), language="torch")
    assert other.error is not None
    assert "ModelNew has no scale, which the weights of Model are" in other.error.message
