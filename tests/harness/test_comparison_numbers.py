"""The comparison of outputs with the oracle against numbers worked by hand, rule by rule."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU, KERNELS, job_for
from triton_magics import operators
from triton_magics.harness.correctness import comparison, oracle, row_chunks
from triton_magics.harness.correctness.call_record import CallRecord, DataFlow
from triton_magics.harness.correctness.case_inputs import CaseInputs
from triton_magics.harness.correctness.comparison import (
    CaseOracle,
    OutputComparison,
    compare_outputs,
    passes_problem_rule,
)
from triton_magics.harness.correctness.row_chunks import Chunk
from triton_magics.harness.correctness.subject import Subject
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, CaseResult, CaseStatus, KernelError, Tolerance

CASE = Case(shape=(3, 8), dtype="float32", seed=1)


def doubles(*rows: Any) -> torch.Tensor:
    return torch.tensor(rows if len(rows) > 1 else rows[0], dtype=torch.float64)


def floats(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


# -------------------------------------------------------------------------------------- chunks


def make_expected(value: torch.Tensor, allowed: float, atol: float = 0.0) -> oracle.ExpectedOutputs:
    return oracle.ExpectedOutputs(
        values=(value,),
        allowed=(torch.full_like(value, allowed),),
        torch_outputs=(value.float(),),
        tolerance=Tolerance(rtol=1e-5, atol=atol, origin="made up"),
        calibrated=atol > 0,
    )


def test_chunks_add_up_to_one_comparison() -> None:
    value = doubles([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    output = torch.zeros(3, 2)
    output[1, 0], output[2, 1] = 4.0, 2.0
    chunks = [Chunk(0, i, 1) for i in range(3)]
    totals = OutputComparison(1)
    for chunk, atol in zip(chunks, (0.1, 0.3, 0.2), strict=True):
        totals.add(chunk, (output,), [make_expected(chunk.slice_output(value), 1.0, atol)])
    assert (totals.error_share, totals.max_abs_error, totals.calibrated) == (4.0, 4.0, True)
    assert totals.tolerance is not None
    assert totals.tolerance.atol == 0.3
    assert totals.worst is not None
    assert (totals.worst.chunk.start, totals.worst.judged.error_share) == (1, 4.0)
    assert totals.mask(totals.worst, output, chunks).nonzero().tolist() == [[1, 0], [2, 1]]
    assert not totals.plain_allclose


def test_right_chunks_have_no_worst_part() -> None:
    totals = OutputComparison(1)
    totals.add(Chunk(), (torch.full((2,), 0.5),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    assert (totals.worst, totals.calibrated, totals.error_share) == (None, False, 0.5)
    assert not totals.plain_allclose  # 0.5 beside torch's 0
    assert totals.problem_rule


def test_a_problems_rule_is_applied_where_there_is_one() -> None:
    totals = OutputComparison(1, problem_tolerance={"atol": 0.25})
    totals.add(Chunk(), (floats(0.25, 0.0),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    assert totals.problem_rule
    totals.add(Chunk(), (floats(0.5, 0.0),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    totals.add(Chunk(), (floats(0.0, 0.0),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    assert not totals.problem_rule


@pytest.mark.parametrize(
    ("got", "rule", "accepted"),
    [
        ((1.5, 1.0, 1.0, 1.0), {"atol": 0.5}, True),
        ((1.51, 1.0, 1.0, 1.0), {"atol": 0.5}, False),
        ((1.5, 1.0, 1.0, 1.0), {"rtol": 0.5}, True),
        ((1.51, 1.0, 1.0, 1.0), {"rtol": 0.5}, False),
        ((9.0, 1.0, 1.0, 1.0), {"matched_ratio": 0.75}, True),
        ((9.0, 9.0, 1.0, 1.0), {"matched_ratio": 0.75}, False),
        ((1.0, 1.0, 1.0, 1.0), {}, True),
        ((1.0, 1.0, 1.0, 1.0, 1.0), {"atol": 9.0}, False),
    ],
)
def test_a_problems_own_rule(
    got: tuple[float, ...], rule: dict[str, float], accepted: bool
) -> None:
    assert passes_problem_rule(torch.tensor(got), torch.ones(4), rule) is accepted


@pytest.mark.parametrize(
    ("got", "accepted"),
    [
        (floats(1 + 1.9e-5, math.nan), True),
        (floats(1 + 2.3e-5, math.nan), False),
        (floats(1.0, math.nan).double(), False),
    ],
)
def test_plain_allclose_has_1e_5_twice(got: torch.Tensor, accepted: bool) -> None:
    assert comparison._passes_plain_allclose(got, floats(1.0, math.nan)) is accepted
    whole = torch.tensor([3, 4])
    assert comparison._passes_plain_allclose(whole, whole)
    assert not comparison._passes_plain_allclose(whole + 1, whole)


def test_plain_values_are_normal_too() -> None:
    assert CASE.has_plain_values
    assert not CASE.evolve(regime="x10").has_plain_values
    assert not CASE.evolve(special="a block of -inf").has_plain_values


def test_of_equal_chunks_the_first_is_shown() -> None:
    totals = OutputComparison(1)
    for start, origin in enumerate(("first", "second")):
        expected = make_expected(doubles([0.0, 0.0]), 1.0, atol=0.5)
        named = dataclasses.replace(expected, tolerance=expected.tolerance.evolve(origin=origin))
        totals.add(Chunk(None, start, 1), (floats(3.0, 0.0),), [named])
    assert totals.worst is not None
    assert totals.tolerance is not None
    assert (totals.worst.chunk.start, totals.tolerance.origin) == (0, "first")


def test_right_outputs_leave_the_first_figures() -> None:
    totals = OutputComparison(1)
    totals.add(Chunk(), (floats(0.25, 0.0),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    assert (totals.error_share, totals.max_abs_error) == (0.25, 0.25)
    exact = OutputComparison(1)
    exact.add(Chunk(), (floats(0.0, 0.0),), [make_expected(doubles([0.0, 0.0]), 1.0)])
    assert (exact.error_share, exact.max_abs_error, exact.plain_allclose) == (0.0, 0.0, True)


def test_nan_agrees_with_nan_by_a_problems_rule() -> None:
    assert passes_problem_rule(floats(math.nan, 1.0), floats(math.nan, 1.0), {"atol": 0.1})
    assert not passes_problem_rule(floats(math.nan, 1.0), floats(1.0, 1.0), {"atol": 0.1})


# ------------------------------------------------------------------------- the oracle of a case


class Reference:
    """A reference that counts its calls in float64, in which the oracle is computed."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.function, self.n_double = function, 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.n_double += x.dtype is torch.float64
        return self.function(x)


def make_oracle(
    function: Callable[[torch.Tensor], torch.Tensor] = lambda x: x * 1.0,
    case: Case = CASE,
    x: torch.Tensor | None = None,
    **changes: Any,
) -> CaseOracle:
    x = torch.ones(3, 8) if x is None else x
    values = {"reference": function, "op_class": "elementwise", "independent": (0,)} | changes
    op = dataclasses.replace(operators.load("softmax"), **values)
    subject = Subject(op, None, job_for(KERNELS / "softmax_right.py"), CPU, "")
    inputs = CaseInputs(arguments=(x,), guards=(), pristine=(x,))
    return CaseOracle(subject, case, inputs, oracle.compute_torch_outputs(op, (x,)))


def make_call(output: torch.Tensor, **more: Any) -> CallRecord:
    return CallRecord(output, (output,), DataFlow(), **more)


def test_what_was_prepared_is_taken_once() -> None:
    reference = Reference(lambda x: x * 1.0)
    one = make_oracle(reference)
    one.prepare()
    assert reference.n_double == 1
    first = next(one.iter_expected(one.chunks[0]))
    assert reference.n_double == 1
    assert first.allowed[0].flatten().tolist() == pytest.approx([2e-5] * 24)
    next(one.iter_expected(one.chunks[0]))
    assert reference.n_double == 2


def test_what_was_prepared_has_no_conditioning() -> None:
    one = make_oracle(lambda x: (x + 2.0**20) - 2.0**20)
    one.prepare()
    without, *_, with_it = one.iter_expected(one.chunks[0])
    assert float(with_it.allowed[0].max()) > 0.1  # 4 times 2**20 units of 2**-23
    assert float(without.allowed[0].max()) < 1e-3


def test_only_the_first_chunk_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 8)
    x = torch.arange(24.0).reshape(3, 8)
    one = make_oracle(x=x)
    assert [chunk.start for chunk in one.chunks] == [0, 1, 2]
    one.prepare()
    second = next(one.iter_expected(one.chunks[1]))
    assert second.values[0].flatten().tolist() == list(range(8, 16))
    result = compare_outputs(one, make_call(x * 1.0))
    assert result.status is CaseStatus.PASSED


def test_an_error_in_a_later_chunk_has_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 8)
    x = torch.arange(24.0).reshape(3, 8)
    output = x.clone()
    output[2, 5] = 0.0
    mismatch = compare_outputs(make_oracle(x=x), make_call(output)).mismatch
    assert mismatch is not None
    assert (mismatch.index, mismatch.expected, mismatch.n_wrong) == ((2, 5), 21.0, 1)


def test_a_failing_reference_raises_where_it_is_needed() -> None:
    def fails_in_float64(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float64:
            raise ValueError("no")
        return x * 1.0

    one = make_oracle(fails_in_float64)
    one.prepare()
    with pytest.raises(UserFault, match="the reference raised ValueError: no"):
        next(one.iter_expected(one.chunks[0]))


# ---------------------------------------------------------------------------- result of a case


def test_only_chunks_that_need_it_have_a_wider_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_chunks, "CHUNK_ELEMENTS", 8)
    reference = Reference(lambda x: (x + 2.0**20) - 2.0**20)
    one = make_oracle(reference)
    output = torch.ones(3, 8)
    assert compare_outputs(one, make_call(output)).status is CaseStatus.PASSED
    assert reference.n_double == len(one.chunks) == 3
    output[1] = 1.1  # within the errors of the sum with 2**20
    result = compare_outputs(one, make_call(output))
    assert (result.status, result.max_abs_error) == (CaseStatus.PASSED, pytest.approx(0.1))
    assert 3 + 3 < reference.n_double <= 3 + 3 + oracle.PERTURBATIONS
    output[1] = 10.0
    assert compare_outputs(one, make_call(output)).status is CaseStatus.WRONG_VALUES


@pytest.mark.parametrize(
    ("case", "rule", "problem_rule", "plain"),
    [
        (CASE, {"atol": 0.5}, True, False),
        (CASE, {}, None, False),
        (CASE.evolve(regime="x10"), {"atol": 0.5}, None, False),
        (CASE.evolve(dtype="float16"), {}, None, None),
    ],
)
def test_other_rules_are_reported_where_they_apply(
    case: Case, rule: dict[str, float], problem_rule: bool | None, plain: bool | None
) -> None:
    x = torch.ones(3, 8, dtype=getattr(torch, case.dtype))
    result = compare_outputs(make_oracle(case=case, x=x, tolerance=rule), make_call(x + 0.25))
    assert (result.problem_rule, result.seeds_rule) == (problem_rule, plain)
    right = compare_outputs(make_oracle(case=case, x=x, tolerance=rule), make_call(x * 1.0))
    assert right.seeds_rule is (True if case.dtype == "float32" else None)


OUTSIDE = KernelError(kind="OutOfBounds", message="outside")
RACE = KernelError(kind="Race", message="race")


@pytest.mark.parametrize(
    ("evidence", "shown"),
    [
        ({}, None),
        ({"outside": OUTSIDE}, OUTSIDE),
        ({"race": RACE}, RACE),
        ({"outside": OUTSIDE, "race": RACE}, OUTSIDE),
    ],
)
@pytest.mark.parametrize("has_own_check", [False, True])
def test_a_wrong_output_shows_what_its_call_did(
    evidence: dict[str, KernelError], shown: KernelError | None, has_own_check: bool
) -> None:
    changes = {"check": lambda _inputs, _value, _again: "not random"} if has_own_check else {}
    wrong = compare_outputs(make_oracle(**changes), make_call(torch.zeros(3, 8), **evidence))
    assert (wrong.status, wrong.error) == (CaseStatus.WRONG_VALUES, shown)


def run_own_check(message: str | None, dtype: str = "float32", **more: Any) -> CaseResult:
    arguments = []

    def check(inputs: tuple[Any, ...], value: torch.Tensor, _again: Any) -> str | None:
        arguments.append((len(inputs), tuple(value.shape)))
        return message

    reference = Reference(lambda x: x * 1)
    x = torch.ones(3, 8, dtype=getattr(torch, dtype))
    one = make_oracle(reference, CASE.evolve(dtype=dtype), x, check=check)
    one.prepare()
    result = compare_outputs(one, make_call(torch.zeros(3, 8), **more))
    assert arguments == [(1, (3, 8))]
    assert reference.n_double == 0  # nothing is compared with an oracle
    return result


@pytest.mark.parametrize(("dtype", "rtol"), [("float32", 1e-5), ("float16", 1e-3), ("int32", 0.0)])
def test_an_own_check_that_accepts_passes(dtype: str, rtol: float) -> None:
    right = run_own_check(None, dtype, outside=OUTSIDE)
    assert (right.status, right.reason, right.error) == (CaseStatus.PASSED, None, None)
    assert (right.error_share, right.calibrated) == (0.0, True)
    assert right.tolerance == Tolerance(rtol=rtol, atol=0.0, origin="the op's own check")


def test_an_own_check_that_refuses_gives_its_message() -> None:
    wrong = run_own_check("half of it is zero")
    assert (wrong.status, wrong.reason) == (CaseStatus.WRONG_VALUES, "half of it is zero")
    assert wrong.error_share is None
