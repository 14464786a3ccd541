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
from triton_magics.harness.correctness.fault_sample import FaultSample
from triton_magics.harness.correctness.matched_fault import (
    Matches,
    find_known_change,
    find_matching_change,
)
from triton_magics.harness.correctness.place_changes import Memory
from triton_magics.model import Case, CauseCode

pytestmark = pytest.mark.in_turn
CPU = torch.device("cpu")
FORMULA, STRIDE = CauseCode.WRONG_FORMULA, CauseCode.WRONG_STRIDE
PARTIAL, PRECISION = CauseCode.PARTIAL_EXTENT, CauseCode.LOWER_PRECISION


def sample_of(
    name: str, shape: tuple[int, ...], wrong: Callable[..., Any], *, seed: int = 3, **case: Any
) -> FaultSample:
    """Return a sample of the outputs that a function gives in float32."""
    op = operators.load(name)
    own = Case(shape=shape, dtype="float32", seed=seed, **case)
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
    "one input": ("vector_mul", lambda x, y: x * x, FORMULA, "x is read in place of y"),
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


def rms(x: torch.Tensor, weight: torch.Tensor, squares: torch.Tensor) -> torch.Tensor:
    return x / squares.sqrt() * weight


def larger_of_both(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return rms(x, weight, x.square().mean(-1, keepdim=True).clamp(min=eps))


def test_a_formula_of_some_shapes_is_named_with_one_of_them() -> None:
    eps = (("eps", 1e-3),)
    wrong = [sample_of("rms_norm", s, larger_of_both, scalars=eps) for s in ((7, 40), (3, 129))]
    reference = operators.load("rms_norm").reference
    right = sample_of("rms_norm", (7, 13), reference, scalars=eps)
    assert not right.n_wrong
    one, both = (
        find_matching_change(operators.load("rms_norm"), samples, [right])
        for samples in (wrong[:1], wrong)
    )
    assert one is None
    assert both is not None
    assert str(both.as_if).endswith("(at 7x40, not at all shapes)")


def test_tiny_values_tell_a_sum_from_the_larger_of_both() -> None:
    op, eps = operators.load("rms_norm"), (("eps", 1e-3),)
    for function, expected in (
        (larger_of_both, "`add` takes the larger of both"),
        (lambda x, w, eps: rms(x, w, x.square().mean(-1, keepdim=True)), "eps is 0.0, not 0.001"),
    ):
        samples = [sample_of("rms_norm", s, function, scalars=eps) for s in ((7, 40), (3, 129))]
        tiny = sample_of("rms_norm", (7, 40), function, scalars=eps, regime="tiny")
        cause = find_matching_change(op, samples, tiny=lambda sample=tiny: sample)
        assert cause is not None
        assert cause.as_if == expected


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


def test_a_known_change_is_named_where_it_gives_the_output() -> None:
    op = operators.load("softmax")
    known_changes: Matches = {}

    def take_base_two(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * math.log(2), -1)

    samples = [sample_of("softmax", shape, take_base_two) for shape in ((7, 13), (6, 17))]
    assert find_matching_change(op, samples, known_changes=known_changes)
    again = find_known_change(op, sample_of("softmax", (2, 5), take_base_two), known_changes)
    assert again is not None
    assert again.as_if == "`exp` is `exp2`"
    other = sample_of("softmax", (2, 5), lambda x: torch.softmax(2 * x, -1))
    assert find_known_change(op, other, known_changes) is None


@pytest.mark.parametrize(("large", "is_named"), [(True, True), (False, False)])
def test_a_missing_maximum_overflows_on_large_values(large: bool, is_named: bool) -> None:
    """The log of a sum has the same value without its maximum, until exp overflows."""

    def loss(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        total = x.exp().sum(-1).log() if large else torch.logsumexp(x, -1)
        return (total + x.amax(-1) - x.gather(1, target[:, None])[:, 0]).mean()

    samples = [sample_of("cross_entropy", (7, 13), loss, seed=s) for s in range(1, 8)]
    heavy = sample_of("cross_entropy", (7, 13), loss, regime="large")
    op = operators.load("cross_entropy")
    cause = find_matching_change(op, samples, large=lambda: heavy)
    assert (cause is not None and cause.code is CauseCode.MISSING_MAXIMUM) is is_named


@pytest.mark.parametrize(("factor", "is_named"), [(0.98, True), (0.997, False)])
def test_a_factor_within_the_rounding_of_bfloat16_is_no_cause(
    factor: float, is_named: bool
) -> None:
    samples = [
        sample_of("vector_mul", shape, lambda x, y: x * y * factor) for shape in ((7, 13), (6, 17))
    ]
    cause = find_matching_change(operators.load("vector_mul"), samples)
    assert (cause is not None) is is_named


def test_a_zero_point_of_the_weights_is_named() -> None:
    def subtract_eight(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return x @ (weight.float() - 8).T * scale

    samples = [
        sample_of("quantized_matmul", shape, subtract_eight) for shape in ((7, 5, 13), (6, 9, 20))
    ]
    cause = find_matching_change(operators.load("quantized_matmul"), samples)
    assert cause is not None
    assert (cause.code, cause.as_if) == (FORMULA, "-8 is added to weight")


def test_few_wrong_elements_are_no_evidence_for_a_parameter() -> None:
    sample = sample_of("sum", (1, 13), lambda x: x.sum(-1) + 0.25)
    assert find_matching_change(operators.load("sum"), [sample]) is None


def skip_negative_blocks(a: torch.Tensor, b: torch.Tensor, block: int = 64) -> torch.Tensor:
    """Multiply without the blocks of terms in which `a` has no positive element."""
    starts = [k for k in range(0, a.shape[1], block) if bool((a[:, k : k + block] > 0).any())]
    parts = [a[:, k : k + block] @ b[k : k + block] for k in starts]
    return sum(parts, torch.zeros(a.shape[0], b.shape[1]))


def test_a_fault_of_some_values_is_not_taken_for_a_part_of_a_sum() -> None:
    shape = (1, 9, 65)  # the second block has one term
    samples = [sample_of("matmul", shape, skip_negative_blocks, seed=s) for s in range(20)]
    wrong = next(s for s in samples if s.n_wrong)
    right = next(s for s in samples if not s.n_wrong)
    op = operators.load("matmul")
    cause = find_matching_change(op, [wrong])
    assert cause is not None
    assert cause.code is PARTIAL
    assert find_matching_change(op, [wrong], [right]) is None


def test_a_right_output_of_another_shape_refutes_a_formula() -> None:
    def take_base_two_in_wide_rows(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * math.log(2), -1) if x.shape[-1] > 15 else torch.softmax(x, -1)

    op, wrong = operators.load("softmax"), take_base_two_in_wide_rows
    wide, narrow = (sample_of("softmax", shape, wrong) for shape in ((6, 17), (7, 13)))
    assert narrow.n_wrong == 0
    cause = find_matching_change(op, [wide])
    assert cause is not None
    assert cause.code is FORMULA
    assert find_matching_change(op, [wide], [narrow]) is None


def test_a_part_may_be_a_whole_in_another_shape() -> None:
    def first_16(x: torch.Tensor) -> torch.Tensor:
        return x[..., :16].sum(-1)

    wide, narrow = (sample_of("sum", shape, first_16) for shape in ((6, 17), (7, 13)))
    cause = find_matching_change(operators.load("sum"), [wide], [narrow])
    assert cause is not None
    assert cause.as_if == "`sum` takes the first 16 of 17 elements"


def test_an_operation_left_out_is_likelier_than_another_place() -> None:
    def first_terms(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos], -1)

    sample = sample_of("rope", (1, 2, 9, 6), first_terms)  # sin is 0 at the first position
    cause = find_matching_change(operators.load("rope"), [sample])
    assert cause is not None
    assert (cause.code, cause.as_if) == (FORMULA, "`add` is left out")


def test_nan_is_no_evidence_of_a_stride() -> None:
    def second_head_unset(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        out = F.scaled_dot_product_attention(q, k, v)
        out[:, 1] = math.nan
        return out

    sample = sample_of("attention", (1, 2, 9, 16), second_head_unset)
    assert find_matching_change(operators.load("attention"), [sample]) is None


def relu_gate(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate.relu() * up


def double_the_power(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate / (1 + 2 * torch.exp(-gate)) * up


def average_the_first(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(logits[:1], target[:1])


def other_signs(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    top, picked = logits.amax(1), logits.gather(1, target[:, None])[:, 0]
    return (torch.log(torch.exp(logits - top[:, None]).sum(1)) - top + picked).mean()


@pytest.mark.parametrize(
    ("name", "wrong", "code", "text"),
    [
        ("swiglu", relu_gate, FORMULA, "the sigmoid is a step from 0 to 1"),
        ("swiglu", double_the_power, FORMULA, "operand 1 of `add` is added to the result"),
        ("cross_entropy", average_the_first, STRIDE, "`mean` takes its first element in place of"),
        ("cross_entropy", other_signs, FORMULA, "all but number 1 have the other sign"),
    ],
)
def test_fault_of_a_gate_or_a_loss_is_named(
    name: str, wrong: Callable[..., Any], code: CauseCode, text: str
) -> None:
    shapes = [(7, 13), (6, 17), (9, 5), (12, 31), (3, 8), (5, 40)]
    samples = [sample_of(name, shape, wrong) for shape in shapes]
    cause = find_matching_change(operators.load(name), samples)
    assert cause is not None
    assert cause.code is code
    assert text in (cause.as_if or "")


def test_a_right_output_refutes_no_change_that_is_none_there() -> None:
    def lose_the_sign(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.abs() @ b

    samples = [sample_of("matmul", (1, 1, 1), lose_the_sign, seed=seed) for seed in range(12)]
    right = [s for s in samples if not s.n_wrong]
    assert right
    wrong = [sample_of("matmul", (7, 5, 13), lose_the_sign), next(s for s in samples if s.n_wrong)]
    cause = find_matching_change(operators.load("matmul"), wrong, right)
    assert cause is not None
    assert cause.as_if == "operand 1 of `mm` has lost its sign"


def halve_the_index(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b[torch.arange(len(b)) // 2]


def subtract_the_power(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate / (1 - torch.exp(-gate)) * up


def roll_the_second_half(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, (b * cos + a * sin).roll(1, -1)], -1)


def halve_the_position(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    position = torch.arange(len(cos)) // 2
    return operators.load("rope").reference(x, cos[position], sin[position])


def take_the_first_half_twice(
    x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - a * sin, b * cos + a * sin], -1)


def divide_by_the_root(x: torch.Tensor) -> torch.Tensor:
    power = torch.exp(x - x.amax(-1, keepdim=True))
    return power / power.sum(-1, keepdim=True).sqrt()


def lose_what_is_negative(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b.relu()


@pytest.mark.parametrize(
    ("name", "shape", "wrong", "code", "text"),
    [
        ("rope", (1, 2, 7, 5), halve_the_position, STRIDE, "cos and sin is read with the index"),
        ("rope", (1, 2, 7, 5), take_the_first_half_twice, FORMULA, "is operand 1 of `mul` number"),
        ("softmax", (7, 13), divide_by_the_root, FORMULA, "the root of operand 2 of `div`"),
        ("matmul", (7, 5, 13), lambda a, b: (a @ b).abs(), FORMULA, "`mm` has lost its sign"),
        ("matmul", (7, 5, 13), lose_what_is_negative, FORMULA, "negative in operand 2 of `mm`"),
        ("matmul", (7, 5, 13), halve_the_index, STRIDE, "b is read with the index of dimension 0"),
        ("swiglu", (7, 13), subtract_the_power, FORMULA, "operand 1 of `add` has the other sign"),
        ("rope", (1, 2, 7, 5), roll_the_second_half, STRIDE, "second half one place off"),
    ],
)
def test_fault_of_an_index_or_a_sign_is_named(
    name: str, shape: tuple[int, ...], wrong: Callable[..., Any], code: CauseCode, text: str
) -> None:
    cause = find_matching_change(operators.load(name), [sample_of(name, shape, wrong)])
    assert cause is not None
    assert cause.code is code
    assert text in (cause.as_if or "")
