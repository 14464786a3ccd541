"""The right answer, and how far from it an output may be."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from operator import attrgetter

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness import (
    accumulated_sums,
    judgement,
    one_case,
    oracle,
    tolerance,
)
from triton_magics.harness.correctness.accumulated_sums import EverySecond, TruncatedProducts
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.judgement import is_correct, judge
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault, load_version
from triton_magics.model import Case, CaseStatus
from triton_magics.operators import BackwardOp

pytestmark = pytest.mark.in_turn

RIGHT = KERNELS / "softmax_right.py"
EVALUATIONS = (oracle.PERTURBATIONS, len(oracle.PARTS_OF_A_UNIT), oracle.N_ORDERS)


def in_another_order(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Compute attention in float32 with sums one term after the other, as a kernel may."""
    scores = torch.zeros(*q.shape[:-1], k.shape[-2])
    for i in range(q.shape[-1]):
        scores += q[..., i : i + 1] * k[..., None, :, i]
    p = torch.exp((scores - scores.amax(-1, keepdim=True)) * q.shape[-1] ** -0.5)
    out = torch.zeros_like(v)
    for j in range(k.shape[-2]):
        out += p[..., j : j + 1] * v[..., j : j + 1, :]
    return out / p.sum(-1, keepdim=True)


def attention_gradients(
    inputs: tuple[torch.Tensor, ...], dtype: torch.dtype
) -> tuple[torch.Tensor, ...]:
    """Compute the gradients of attention; tensor cores multiply weights and scores in a dtype."""
    grad, q, k, v = (x.float() for x in inputs)
    factor = q.shape[-1] ** -0.5
    weights = torch.softmax(q @ k.mT * factor, -1)
    delta = (grad * (weights @ v)).sum(-1, keepdim=True)
    scores = (weights * (grad @ v.mT - delta)).to(dtype).float()
    gradients = scores @ k * factor, scores.mT @ q * factor, weights.to(dtype).float().mT @ grad
    return tuple(x.to(inputs[0].dtype) for x in gradients)


@pytest.mark.parametrize(
    ("dtype", "lower"),
    [(torch.float16, torch.bfloat16), (torch.bfloat16, torch.float8_e4m3fn)],
)
def test_tensor_cores_multiply_results_in_the_inputs_dtype(
    dtype: torch.dtype, lower: torch.dtype
) -> None:
    op = BackwardOp("attention_backward", operators.load("attention"))
    accepted = {dtype: 0, lower: 0}
    for seed in range(8):  # with seed 8 a product is past float16's range
        case = Case(
            shape=(1, 2, 33, 80), dtype=str(dtype).removeprefix("torch."), regime="normal",
            special="huge element", seed=seed,
        )  # fmt: skip
        inputs = make_pristine(op, case, CPU)
        *_, expected = oracle.iter_expected(op, inputs, case)
        for products in accepted:
            judgements = expected.judge_outputs(attention_gradients(inputs, products))
            accepted[products] += all(j.is_correct for j in judgements)
    assert accepted == {dtype: 8, lower: 0}


def fused_gradients(
    inputs: tuple[torch.Tensor, ...], *, stored: torch.dtype = torch.float32, share: float = 1.0
) -> tuple[torch.Tensor, ...]:
    """Compute the gradients of attention as fused kernels do, with weights from log-sum-exp.

    Args:
        inputs: grad_output, q, k and v.
        stored: the dtype of the output that the backward pass reads.
        share: of delta that is subtracted; 1 is right.
    """
    dtype, factor = inputs[1].dtype, inputs[1].shape[-1] ** -0.5
    grad, q, k, v = (x.float() for x in inputs)
    scores = q @ k.mT * factor
    top = scores.amax(-1, keepdim=True)
    p = torch.exp(scores - top)
    total = p.sum(-1, keepdim=True)
    out = (p.to(dtype).float() @ v / total).to(stored).float()
    p = torch.exp(scores - (top + total.log()))
    delta = (grad * out).sum(-1, keepdim=True) * share
    ds = (p * (grad @ v.mT - delta)).to(dtype).float()
    gradients = ds @ k * factor, ds.mT @ q * factor, p.to(dtype).float().mT @ grad
    return tuple(x.to(dtype) for x in gradients)


# seeds choose which of grad_output, q, k and v has rows unlike their neighbours
FUSED_CASES = [
    Case(shape=(2, 4, 16, 32), dtype=dtype, regime="shifted", special=special, seed=seed)
    for dtype in ("float16", "bfloat16")
    for special, n in (("rows unlike their neighbours", 4), ("exact cancellation", 1), ("plain", 1))
    for seed in range(n)
]


@pytest.fixture(params=[SDPBackend.FLASH_ATTENTION, SDPBackend.MATH])
def backend(request: pytest.FixtureRequest) -> SDPBackend:
    """Return how torch computes attention in float64: the first on a CPU, the other on a GPU."""
    return request.param


def test_fused_gradients_of_attention_are_not_refused(backend: SDPBackend) -> None:
    op = BackwardOp("attention_backward", operators.load("attention"))
    shares, n_wrong = [], 0
    for case in FUSED_CASES:
        inputs = make_pristine(op, case, CPU)
        exact = oracle.evaluate(op, oracle.upcast(inputs))[1]
        ideal = tuple(x.to(inputs[1].dtype) for x in exact)  # torch's own error widens nothing
        with sdpa_kernel(backend):
            *_, expected = oracle.iter_expected(op, inputs, case, torch_outputs=ideal)
        for stored in (torch.float32, inputs[1].dtype):
            judgements = expected.judge_outputs(fused_gradients(inputs, stored=stored))
            shares += [j.error_share for j in judgements]
        wrong = expected.judge_outputs(fused_gradients(inputs, share=0.97))
        n_wrong += not all(j.is_correct for j in wrong)
    assert max(shares) < 1
    assert n_wrong == len(FUSED_CASES)


def test_a_sound_attention_with_large_scores_is_not_refused() -> None:
    op, shares, without = operators.load("attention"), [], []
    for seed in range(12):
        case = Case(shape=(2, 3, 65, 32), dtype="float32", regime="x10", seed=seed)
        inputs = make_pristine(op, case, CPU)
        right = in_another_order(*inputs)
        for errors, conditioning in (
            (shares, oracle.Conditioning.ALL),
            (without, oracle.Conditioning.NONE),
        ):
            (value,), (allowed,) = attrgetter("values", "allowed")(
                oracle.compute_expected(op, inputs, case, None, None, conditioning=conditioning)
            )
            errors.append(judge(right, value, allowed).error_share)
            assert not judge(right * (1 + 1e-3), value, allowed).is_correct
    assert max(shares) < 1 < max(without)


def attention_of_products(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, multiply: Callable[..., torch.Tensor]
) -> torch.Tensor:
    scores = multiply(q, k.mT).float() * q.shape[-1] ** -0.5
    weights = torch.exp(scores - scores.amax(-1, keepdim=True))
    return (multiply(weights, v).float() / weights.sum(-1, keepdim=True)).to(q.dtype)


def of_short_groups(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    with TruncatedProducts(4, every_second=EverySecond.BACKWARDS):
        return a.double() @ b.double()


def in_tf32(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a, b = ((x.contiguous().view(torch.int32) & -(1 << 13)).view(torch.float32) for x in (a, b))
    return a @ b


def test_attention_in_float32_on_tensor_cores_is_not_refused() -> None:
    """One of three TF32 products each was at 1.11 of an allowed error (H200, one of 85 draws)."""
    op, shares, of_tf32 = operators.load("attention"), [], []
    for seed in range(10):
        case = Case(
            shape=(1, 1, 129, 128), dtype="float32", regime="x10", special="composed factors",
            seed=seed,
        )  # fmt: skip
        inputs = make_pristine(op, case, CPU)
        expected = oracle.compute_expected(op, inputs, case, None, None)
        for errors, multiply in ((shares, of_short_groups), (of_tf32, in_tf32)):
            (judgement,) = expected.judge_outputs((attention_of_products(*inputs[:3], multiply),))
            errors.append(judgement.error_share)
    assert max(shares) < 1
    assert min(of_tf32) > 10


def cut_off(x: torch.Tensor, unit: torch.Tensor) -> torch.Tensor:
    return (x / unit).trunc() * unit


def on_tensor_cores(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply as Hopper does: 16 products are aligned to the largest term, added and cut off."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=torch.float64)
    for i in range(0, a.shape[1], 16):
        terms = a.double()[:, i : i + 16, None] * b.double()[None, i : i + 16]
        largest = torch.maximum(terms.abs().amax(1), total.abs())
        unit = torch.exp2(torch.frexp(largest).exponent.double() - 25)
        total = cut_off(cut_off(terms, unit[:, None]).sum(1) + cut_off(total, unit), unit * 2)
    return total.to(a.dtype)


@pytest.mark.parametrize("few", [0, accumulated_sums.FEW_TERMS])
def test_a_product_on_tensor_cores_is_not_refused(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulated_sums, "FEW_TERMS", few)
    op, special = operators.load("matmul"), "exact cancellation"
    case = Case(shape=(3, 5, 8209), dtype="float16", regime="negative", special=special, seed=26)
    a, b = make_pristine(op, case, CPU)
    a, b = a[:1].expand_as(a), b[:1].expand_as(b)
    expected = oracle.compute_expected(op, (a, b), case, None, None)
    (value,), (allowed,) = expected.values, expected.allowed
    right = on_tensor_cores(a, b)
    assert not value.any()
    assert 0.02 < judge(right, value, allowed).error_share < 1
    assert not judge(right + 40 * float(right.abs().max()), value, allowed).is_correct


def test_a_right_answer_takes_few_evaluations_of_the_reference() -> None:
    calls: list[torch.dtype] = []
    op = operators.load("softmax")

    def counting(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.dtype)
        return torch.softmax(x, -1)

    subject = Subject(
        dataclasses.replace(op, reference=counting), load_version(job_for(RIGHT).version),
        job_for(RIGHT), CPU, RIGHT.read_text(),
    )  # fmt: skip
    result, _ = one_case.run_case(subject, Case(shape=(7, 13), dtype="float32", seed=1))
    assert result.status is CaseStatus.PASSED
    assert result.deterministic  # so it was called again, with new contents, and without launches
    assert len(calls) == 5  # twice torch's own and the float64 answer; once a precision lower
    assert calls.count(torch.float64) == 2


@pytest.mark.parametrize("is_default", [True, False])
def test_a_reference_is_judged_without_cudnns_attention(is_default: bool) -> None:
    settings: list[bool] = []

    def looking(x: torch.Tensor) -> torch.Tensor:
        settings.append(torch.backends.cuda.cudnn_sdp_enabled())
        if len(settings) > 1:
            raise ValueError("the second time")
        return torch.softmax(x, -1)

    op = dataclasses.replace(operators.load("softmax"), reference=looking)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(is_default)
    try:
        oracle.evaluate(op, (torch.randn(2, 3),))
        with pytest.raises(UserFault, match="the second time"):
            oracle.evaluate(op, (torch.randn(2, 3),))
        assert (settings, torch.backends.cuda.cudnn_sdp_enabled()) == ([False, False], is_default)
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)


def test_the_wide_tolerance_is_made_only_where_one_goes_on_to_it() -> None:
    calls: list[torch.dtype] = []
    op = operators.load("layer_norm")

    def counting(*inputs: torch.Tensor) -> torch.Tensor:
        calls.append(inputs[0].dtype)
        return op.reference(*inputs)

    case = Case(shape=(7, 64), dtype="float32", seed=1)
    x, *rest = make_pristine(op, case, CPU)
    inputs = (x + 1000, *rest)  # a mean far larger than the spread
    oracles = oracle.iter_expected(dataclasses.replace(op, reference=counting), inputs, case)
    plain = next(oracles)
    assert calls == [torch.float32, torch.float64]
    few = next(oracles)
    assert len(calls) == 2 + sum(oracle.STAGES[0])
    some = next(oracles)
    assert len(calls) == 2 + sum(map(sum, oracle.STAGES))
    wide = next(oracles)
    assert len(calls) == 2 + sum(EVALUATIONS)
    assert next(oracles, None) is None
    stages = (plain, few, some, wide)
    assert all((a.allowed[0] <= b.allowed[0]).all() for a, b in itertools.pairwise(stages))
    between = plain.values[0] + (plain.allowed[0] + wide.allowed[0]) / 2
    assert (wide.allowed[0] > plain.allowed[0]).any()
    assert [o.judge_outputs((between,))[0].is_correct for o in (plain, wide)] == [False, True]


def expected_of(op: str, case: Case) -> oracle.ExpectedOutputs:
    inputs = make_pristine(operators.load(op), case, CPU)
    return oracle.compute_expected(operators.load(op), inputs, case, None, None)


@pytest.mark.parametrize("op", ["softmax", "layer_norm", "matmul", "vector_add", "gelu", "sum"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_torch_passes_and_one_precision_lower_fails(op: str, dtype: str) -> None:
    shape = (65, 33, 47) if op == "matmul" else (65, 129)
    expected = expected_of(op, Case(shape=shape, dtype=dtype, seed=5))
    for torch_outputs, value, allowed in zip(
        expected.torch_outputs, expected.values, expected.allowed, strict=True
    ):
        assert judge(torch_outputs, value, allowed).error_share <= 1
    assert expected.calibrated


def test_the_tolerance_separates_errors_at_its_border() -> None:
    expected = expected_of("softmax", Case(shape=(9, 33), dtype="float32", seed=5))
    value, allowed = expected.values[0], expected.allowed[0]
    inside, outside = value.clone(), value.clone()
    inside[4, 7] += 0.99 * allowed[4, 7]
    outside[4, 7] += 1.01 * allowed[4, 7]
    assert judge(inside, value, allowed).is_correct
    judged = judge(outside, value, allowed)
    assert judged.wrong is not None
    assert judged.wrong.nonzero().tolist() == [[4, 7]]
    assert judged.error_share == pytest.approx(1.01)


def test_zeros_do_not_pass_because_everything_is_small() -> None:
    case = Case(shape=(2, 4097), dtype="float32", seed=5)  # outputs of about 2e-4
    expected = expected_of("softmax", case)
    zeros = torch.zeros_like(expected.values[0])
    assert judge(zeros, expected.values[0], expected.allowed[0]).error_share > 1000


def test_nan_and_infinities_must_be_where_the_oracle_has_them() -> None:
    value = torch.tensor([1.0, math.nan, math.inf, -math.inf], dtype=torch.float64)
    allowed = torch.full((4,), 1e-5, dtype=torch.float64)
    assert judge(value.clone(), value, allowed).is_correct
    for i, wrong in enumerate([math.nan, 1.0, -math.inf, math.nan]):
        got = value.clone()
        got[i] = wrong
        judged = judge(got, value, allowed)
        assert judged.wrong is not None
        assert judged.wrong.nonzero().flatten().tolist() == [i]


def test_comparison_in_pieces_equals_comparison_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = expected_of("softmax", Case(shape=(65, 33), dtype="float32", seed=5))
    got = whole.values[0].clone()
    got[40, 3] += 3 * float(whole.allowed[0][40, 3])
    got[64, 32] = math.nan
    at_once = judge(got, whole.values[0], whole.allowed[0])
    monkeypatch.setattr(judgement, "PIECE_ELEMENTS", 100)
    monkeypatch.setattr(tolerance, "PIECE_ELEMENTS", 100)
    pieces = expected_of("softmax", Case(shape=(65, 33), dtype="float32", seed=5))
    assert torch.allclose(pieces.allowed[0], whole.allowed[0], rtol=1e-12, atol=0)
    assert pieces.tolerance.origin == whole.tolerance.origin
    again = judge(got, whole.values[0], whole.allowed[0])
    assert at_once.wrong is not None
    assert again.wrong is not None
    assert again.wrong.nonzero().tolist() == at_once.wrong.nonzero().tolist() == [[40, 3], [64, 32]]
    assert again.error_share == at_once.error_share == math.inf
    assert again.max_abs_error == at_once.max_abs_error


def test_right_at_a_glance_is_right_when_looked_at_closely() -> None:
    odd = [0.0, -0.0, 1.0, 1.0000001, 1.1, -1.0, math.nan, math.inf, -math.inf, 7e4]
    verdicts = set()
    for a in odd:
        for b in odd:
            for width in (0.0, 1e-6, math.inf):
                got = torch.tensor([1.0, a], dtype=torch.float16)
                value = torch.tensor([1.0, b], dtype=torch.float64)
                allowed = torch.tensor([1e-3, width], dtype=torch.float64)
                right = judge(got, value, allowed).is_correct
                assert is_correct(got, value, allowed) is right, (a, b, width)
                verdicts.add((right, math.isfinite(a), a == b))
    assert {(True, True, True), (False, True, False), (True, False, True)} <= verdicts


def test_a_value_too_large_for_the_dtype_may_be_infinite() -> None:
    value = torch.tensor([1e6, -1e6], dtype=torch.float64)
    got = torch.tensor([math.inf, -math.inf], dtype=torch.float16)
    allowed = torch.full((2,), 1.0, dtype=torch.float64)
    assert judge(got, value, allowed).is_correct
    assert not judge(-got, value, allowed).is_correct
