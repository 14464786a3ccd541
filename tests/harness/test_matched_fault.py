"""A change of the reference that gives a wrong output is named; another one never is."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from triton_magics import operators
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.matched_fault import FaultSample, find_matching_change
from triton_magics.harness.correctness.place_changes import Memory
from triton_magics.model import Case, CauseCode

CPU = torch.device("cpu")
FORMULA, STRIDE = CauseCode.WRONG_FORMULA, CauseCode.WRONG_STRIDE
PARTIAL, PRECISION = CauseCode.PARTIAL_EXTENT, CauseCode.LOWER_PRECISION


def sample_of(
    name: str, shape: tuple[int, ...], wrong: Callable[..., Any], **case: Any
) -> FaultSample:
    """Return a sample of the outputs that a function gives in float32."""
    op = operators.load(name)
    own = Case(shape=shape, dtype="float32", seed=3, **case)
    inputs = make_pristine(op, own, CPU)
    got = wrong(*inputs)
    expected = oracle.compute_expected(op, inputs, own, None, None, diagnose=False)
    judged = expected.judge_outputs((got,))[0]
    tensors = [isinstance(x, torch.Tensor) and x.dtype.is_floating_point for x in inputs]
    return FaultSample(
        case=own,
        inputs=oracle.upcast(inputs),
        got=(got.double(),),
        expected=expected.values,
        allowed=expected.allowed,
        memory=tuple(Memory.of(x) if t else None for x, t in zip(inputs, tensors, strict=True)),
        n_wrong=0 if judged.wrong is None else int(judged.wrong.sum()),
        largest=torch.finfo(torch.float32).max,
    )


def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, n: int, eps: float) -> Any:
    distance = x - x.mean(-1, keepdim=True)
    spread = (distance.square().sum(-1, keepdim=True) / n + eps).sqrt()
    return distance / spread * weight + bias


def without_bias(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> Any:
    return F.layer_norm(x, weight.shape, weight, None, eps)


FAULTS = {
    "base 2": ("softmax", lambda x: torch.softmax(x * math.log(2), -1), FORMULA, "exp2"),
    "not divided": (
        "softmax",
        lambda x: torch.exp(x - x.amax(-1, keepdim=True)),
        FORMULA,
        "`div` is left out",
    ),
    "other axis": ("softmax", lambda x: torch.softmax(x, -2), FORMULA, "dimensions are exchanged"),
    "tanh": ("gelu", lambda x: F.gelu(x, approximate="tanh"), FORMULA, "tanh of a cubic"),
    "n - 1": (
        "layer_norm",
        lambda x, w, b, eps: norm(x, w, b, n=x.shape[-1] - 1, eps=eps),
        FORMULA,
        "divides by one less",
    ),
    "no bias": ("layer_norm", without_bias, FORMULA, "bias is 0"),
    "sum": ("mean", lambda x: x.sum(-1), FORMULA, "`mean` is `sum`"),
    "first left out": ("sum", lambda x: x[..., 1:].sum(-1), PARTIAL, "takes the last 12 of 13"),
    "one input": ("vector_mul", lambda x, y: x * x, FORMULA, "argument 1 is read in place of y"),
    "alpha": ("vector_add", lambda x, y, alpha: x + y, FORMULA, "alpha is 1"),
    "leaks": ("relu", lambda x: F.leaky_relu(x, 0.125), FORMULA, "multiplied by 0.125"),
    "caps": ("relu", lambda x: x.clamp(0, 0.5), FORMULA, "at most 0.5"),
    "half": ("vector_mul", lambda x, y: (x.half() * y).float(), PRECISION, "x is rounded to"),
    "transposed": ("relu", lambda x: x.mT.reshape(x.shape).relu(), STRIDE, "x is read"),
    "exchanged strides": (
        "relu",
        lambda x: torch.cat([x.flatten(), x.new_zeros(99)]).as_strided(x.shape, (1, 1)).relu(),
        STRIDE,
        "strides [1, 1], not [13, 1]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_named(name: str) -> None:
    op, wrong, code, text = FAULTS[name]
    scalars = (("alpha", 0.5),) if op == "vector_add" else ()
    samples = [sample_of(op, shape, wrong, scalars=scalars) for shape in ((7, 13), (6, 17))]
    cause = find_matching_change(operators.load(op), samples)
    assert cause is not None
    assert cause.code is code
    assert text in (cause.as_if or "")


def test_a_mask_that_is_one_place_off_is_named() -> None:
    def sees_one_ahead(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> Any:
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    sample = sample_of("mha", (1, 1, 9, 16), sees_one_ahead, scalars=(("is_causal", True),))
    cause = find_matching_change(operators.load("mha"), [sample])
    assert cause is not None
    assert cause.code is FORMULA
    assert "by one" in (cause.as_if or "")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: torch.softmax(x, -1) + 1e-3 * torch.randn(x.shape),
        lambda x: torch.rand(x.shape),
        lambda x: torch.softmax(x, -1).index_fill(0, torch.tensor([2]), torch.nan),
        lambda x: torch.full_like(x, torch.nan),
        lambda x: torch.softmax(x, -1).index_fill(0, torch.tensor([2]), 0.25),
    ],
    ids=["noise", "random", "a row of NaN", "all NaN", "one row"],
)
def test_another_fault_has_no_cause(wrong: Callable[..., Any]) -> None:
    samples = [sample_of("softmax", shape, wrong) for shape in ((7, 13), (6, 17))]
    assert find_matching_change(operators.load("softmax"), samples) is None


def test_a_change_that_does_not_explain_every_sample_says_where() -> None:
    samples = [
        sample_of("softmax", (7, 13), lambda x: torch.softmax(x * math.log(2), -1)),
        sample_of("softmax", (6, 17), lambda x: torch.softmax(x, -1) * 2),
    ]
    cause = find_matching_change(operators.load("softmax"), samples)
    assert cause is not None
    assert str(cause.as_if).endswith("(at 7x13, not at all shapes)")
    small = [sample_of("softmax", (2, 5), lambda x: torch.softmax(x * math.log(2), -1)), samples[1]]
    assert find_matching_change(operators.load("softmax"), small) is None


def test_few_wrong_elements_are_no_evidence_for_a_parameter() -> None:
    sample = sample_of("sum", (1, 13), lambda x: x.sum(-1) + 0.25)
    assert find_matching_change(operators.load("sum"), [sample]) is None
