"""The judge's arithmetic against numbers worked by hand: each constant, each border."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU
from triton_magics import operators
from triton_magics.harness.correctness import call_record, judgement, oracle, tolerance
from triton_magics.harness.correctness.case_inputs import make_pristine
from triton_magics.harness.correctness.judgement import is_correct, is_within, judge
from triton_magics.harness.correctness.tolerance import ScaledTolerance, calibrate
from triton_magics.harness.load import UserFault
from triton_magics.model import Case, Tolerance

EPS32 = 2.0**-23


def doubles(*rows: Any) -> torch.Tensor:
    return torch.tensor(rows if len(rows) > 1 else rows[0], dtype=torch.float64)


def floats(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


# ------------------------------------------------------------------------------------ tolerance


def test_constants_of_the_tolerance() -> None:
    assert tolerance.STATED_RTOL == {
        "float64": 1e-12, "float32": 1e-5, "float16": 1e-3, "bfloat16": 8e-3
    }  # fmt: skip
    assert (tolerance.TORCH_ERROR_FACTOR, tolerance.CONDITIONING_FACTOR) == (3.0, 4.0)
    assert (oracle.PERTURBATIONS, judgement.PIECE_ELEMENTS) == (17, 4194304)


def run_calibrate(
    value: torch.Tensor,
    torch_output: torch.Tensor,
    step: torch.Tensor | None = None,
    *,
    stated: float = 1e-2,
    by_row: bool = False,
) -> tuple[list[Any], Tolerance]:
    steps = None if step is None else [step]
    (allowed,), shown = calibrate(
        (value,), (torch_output,), steps, stated, by_row=by_row, diagnose=True
    )
    return allowed.tolist(), shown


def test_stated_part_is_relative_to_element_and_output() -> None:
    value = doubles([[3.0, 4.0], [0.0, 0.0]])
    allowed, shown = run_calibrate(value, value.float())
    scale = 2.5  # the root of (9 + 16) / 4
    assert allowed[0] == pytest.approx([0.055, 0.065])
    assert allowed[1] == pytest.approx([0.025, 0.025])
    assert shown.origin == "0.01, from the spec, at the output's own scale"
    assert (shown.rtol, shown.atol) == (0.01, pytest.approx(0.01 * scale))


def test_stated_part_by_row_has_the_scale_of_the_row() -> None:
    value = doubles([[3.0, -4.0], [0.0, 1.0]])
    allowed, _ = run_calibrate(value, value.float(), by_row=True)
    first, second = math.sqrt(12.5), math.sqrt(0.5)
    assert allowed[0] == pytest.approx([0.01 * (3 + first), 0.01 * (4 + first)])
    assert allowed[1] == pytest.approx([0.01 * second, 0.01 * (1 + second)])


def test_torch_error_counts_three_times_and_by_row() -> None:
    value = doubles([[1.0, 1.0], [1.0, 1.0]])
    allowed, shown = run_calibrate(value, torch.tensor([[1.5, 1.25], [1.0, 1.0]]))
    assert allowed[0] == pytest.approx([1.5, 1.5])
    assert allowed[1] == pytest.approx([0.02, 0.02])
    assert shown.origin == "torch's own error"


def test_torch_error_of_a_vector_is_of_the_whole() -> None:
    allowed, _ = run_calibrate(doubles([1.0, 1.0]), torch.tensor([0.5, 1.0]))
    assert allowed == pytest.approx([1.5, 1.5])


def test_conditioning_counts_four_times_by_element_or_row() -> None:
    value = doubles([[1.0, 1.0], [1.0, 1.0]])
    step = doubles([[0.25, 0.125], [0.0, 0.0]])
    allowed, shown = run_calibrate(value, value.float(), step)
    assert allowed[0] == pytest.approx([1.0, 0.5])
    assert allowed[1] == pytest.approx([0.02, 0.02])
    assert shown.origin == "conditioning"
    by_row, _ = run_calibrate(value, value.float(), step, by_row=True)
    assert by_row[0] == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize(
    ("dtype", "smallest"), [(torch.float32, 2.0**-126), (torch.float16, 2.0**-24)]
)
def test_underflow_may_always_be_flushed(dtype: torch.dtype, smallest: float) -> None:
    allowed, _ = run_calibrate(doubles([0.0, 0.0]), torch.zeros(2, dtype=dtype))
    assert allowed == [smallest, smallest]


def test_integers_are_exact_but_for_torch_own_rounding() -> None:
    (allowed,), shown = calibrate(
        (torch.tensor([3, 5]),), (torch.tensor([3, 4]),), None, 1e-5, by_row=False, diagnose=True
    )
    assert allowed.tolist() == [0.0, 1.0]
    assert (shown.rtol, shown.atol, shown.origin) == (0.0, 0.0, "exact, integers")


def test_the_largest_scale_of_several_outputs_is_shown() -> None:
    values = (doubles([1.0, 1.0]), torch.tensor([7, 7]), doubles([10.0, 10.0]))
    outputs = tuple(v.float() if v.is_floating_point() else v for v in values)
    _, shown = calibrate(values, outputs, None, 1e-2, by_row=False, diagnose=True)
    assert shown.atol == pytest.approx(0.1)
    _, plain = calibrate(values, outputs, None, 1e-2, by_row=False, diagnose=False)
    assert (plain.atol, plain.origin) == (0.0, "not computed")


def test_nonfinite_elements_have_no_scale() -> None:
    value = doubles([[3.0, math.inf], [math.nan, 4.0]])
    assert float(tolerance.rms(value)) == 2.5
    assert tolerance.rms(value, by_row=True).flatten().tolist() == pytest.approx(
        [math.sqrt(4.5), math.sqrt(8.0)]
    )
    assert float(tolerance.rms(torch.empty(0, dtype=torch.float64))) == 0.0


def test_scale_in_pieces_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    value = torch.arange(12, dtype=torch.float64).reshape(6, 2)
    outputs = value.float() + 1
    whole, rows = tolerance.rms(value), tolerance.rms(value, by_row=True)
    monkeypatch.setattr(tolerance, "PIECE_ELEMENTS", 4)
    assert float(tolerance.rms(value)) == pytest.approx(float(whole))
    assert torch.equal(tolerance.rms(value, by_row=True), rows)
    assert [len(part) for part in tolerance._split_rows(value)] == [2, 2, 2]
    assert tolerance._torch_error(outputs, value).flatten().tolist() == [1.0] * 6


def test_scale_by_row_is_of_the_last_dimension() -> None:
    value = torch.arange(24, dtype=torch.float64).reshape(2, 3, 4)
    rows = tolerance.rms(value, by_row=True)
    assert rows.shape == (2, 3, 1)
    assert float(rows[0, 0, 0]) == pytest.approx(math.sqrt(14 / 4))


def test_widening_by_row_is_of_the_last_dimension() -> None:
    value = torch.ones(2, 2, 3, dtype=torch.float64)
    step = torch.zeros_like(value)
    step[0, 0, 2] = 0.25
    allowed, _ = run_calibrate(value, value.float(), step, by_row=True)
    assert allowed[0][0] == pytest.approx([1.0] * 3)
    assert allowed[0][1] == pytest.approx([0.02] * 3)


def test_origin_is_the_part_with_the_largest_mean() -> None:
    value = torch.ones(1, 1000, dtype=torch.float64)
    torch_output = value.float().clone()
    torch_output[0, 0] = 1.01  # three times that is 0.03, of the row; 0.02 from the spec
    _, shown = run_calibrate(value, torch_output)
    assert shown.origin == "torch's own error"


def test_empty_outputs_and_integers_leave_the_others() -> None:
    values = (torch.empty(2, 0, dtype=torch.float64), torch.tensor([7]), doubles([1.0, 1.0]))
    outputs = (values[0].float(), values[1], values[2].float())
    allowed, _ = calibrate(values, outputs, None, 1e-2, by_row=True, diagnose=True)
    assert [tuple(a.shape) for a in allowed] == [(2, 0), (1,), (2,)]
    assert allowed[2].tolist() == pytest.approx([0.02, 0.02])


@pytest.mark.parametrize(
    ("values", "atol", "loosened"),
    [
        ((torch.tensor([3]),), 5e-5, True),  # without floats the scale is 1
        ((torch.tensor([3]),), 0.5e-5, False),
        ((torch.ones(2).double(), 10 * torch.ones(2).double()), 5e-5, False),  # the largest, 10
        ((torch.ones(2).double(), 10 * torch.ones(2).double()), 2e-4, True),
    ],
)
def test_own_atol_is_looser_than_the_largest_scale(
    values: tuple[torch.Tensor, ...], atol: float, loosened: bool
) -> None:
    none = tuple(torch.zeros(v.shape, dtype=torch.float64) for v in values)
    _, shown = tolerance.apply_own_tolerance(None, atol, values, none, 1e-5)
    assert shown.loosened is loosened


@pytest.mark.parametrize(
    ("rtol", "atol", "allowed", "loosened"),
    [
        (0.1, None, [0.5, 0.5], True),  # never narrower than the calibrated errors
        (1.0, None, [1.0, 2.0], True),
        (None, 0.25, [0.5, 0.5], True),
        (None, 3.0, [3.01, 3.02], True),
        (0.001, None, [0.001, 0.002], False),
        (0.01, None, [0.01, 0.02], False),
        (0.01, 0.0158, [0.0258, 0.0358], False),  # 0.01 times the scale of 1.581
        (0.01, 0.0159, [0.5, 0.5], True),
    ],
)
def test_own_tolerance_replaces_or_widens(
    rtol: float | None, atol: float | None, allowed: list[float], loosened: bool
) -> None:
    value, default = doubles([1.0, -2.0]), doubles([0.5, 0.5])
    (errors,), shown = tolerance.apply_own_tolerance(rtol, atol, (value,), (default,), 0.01)
    assert errors.tolist() == pytest.approx(allowed)
    assert (shown.loosened, shown.origin) == (loosened, "yours")
    assert (shown.rtol, shown.atol) == (0.01 if rtol is None else rtol, atol or 0.0)


def test_own_tolerance_leaves_integers_exact() -> None:
    default = doubles([0.0])
    (errors,), _ = tolerance.apply_own_tolerance(1.0, 1.0, (torch.tensor([3]),), (default,), 1e-5)
    assert errors.tolist() == [0.0]
    _, shown = tolerance.apply_own_tolerance(None, 1.0, (torch.tensor([3]),), (default,), 1e-5)
    assert shown.loosened


def test_further_outputs_keep_the_widening_only() -> None:
    value = doubles([[3.0, 4.0], [3.0, 4.0]])
    stated = 0.01 * (value + math.sqrt(12.5))
    allowed = stated.clone()
    allowed[1, 0] = 0.5
    scaled = ScaledTolerance.of((value,), (allowed,), 0.01, by_row=False)
    assert scaled.widest == (0.5,)
    assert scaled.allowed_errors((value * 100,))[0].flatten().tolist() == pytest.approx(
        [100 * float(s) for s in stated.flatten()]
    )
    assert scaled.allowed_errors((value,))[0].flatten().tolist() == [0.5] * 4
    assert ScaledTolerance.of((value,), (stated,), 0.01, by_row=False).widest == (0.0,)
    nothing = torch.empty(0, dtype=torch.float64)
    assert ScaledTolerance.of((nothing,), (nothing,), 0.01, by_row=False).widest == (0.0,)


def test_further_integers_stay_exact() -> None:
    whole = torch.tensor([3, 4])
    scaled = ScaledTolerance.of((whole,), (doubles([0.0, 0.0]),), 0.01, by_row=False)
    assert scaled.allowed_errors((whole,))[0].tolist() == 0.0


def test_float32_is_rounded_to_tf32() -> None:
    below = 1 + 4095 * EPS32  # the half of TF32's unit is 4096 of float32's
    x = floats(1 + 2.0**-11, 1 + 2.0**-12, 1 + 3 * 2.0**-11, below, math.inf, math.nan)
    (lower,) = tolerance.lower_precision((x,), "float32")
    assert lower[:4].tolist() == [1 + 2.0**-10, 1.0, 1 + 2.0**-9, 1.0]
    assert lower[4].isinf()
    assert lower[5].isnan()
    assert tolerance.lower_precision((torch.tensor([3]), 0.5), "float32")[0].tolist() == [3]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_rounded_to_float8(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0625, 1.125, 1000.0, -1000.0], dtype=dtype)
    (lower,) = tolerance.lower_precision((x,), str(dtype).removeprefix("torch."))
    assert lower.dtype is dtype
    assert lower.tolist() == [1.0, 1.125, 448.0, -448.0]


def test_float64_is_rounded_to_float32_and_float8_loses_a_bit() -> None:
    (lower,) = tolerance.lower_precision((doubles([1 + 2.0**-30, 1 + EPS32]),), "float64")
    assert lower.tolist() == [1.0, 1 + EPS32]
    values = [1.125, 1.25, 1.375, 448.0, -448.0]
    x = torch.tensor(values).to(torch.float8_e4m3fn)
    (lower,) = tolerance.lower_precision((x,), "float8_e4m3fn")
    assert lower.float().tolist() == [1.25, 1.25, 1.5, 448.0, -448.0]
    wide = torch.tensor([1.25, 1.5, 57344.0, math.inf]).to(torch.float8_e5m2)
    (lower,) = tolerance.lower_precision((wide,), "float8_e5m2")
    assert lower.float().tolist() == [1.5, 1.5, 57344.0, math.inf]


def test_accumulation_is_in_float32_but_for_float64() -> None:
    assert tolerance.accumulation_unit("float64") == 2.0**-52
    for dtype in ("float32", "float16", "bfloat16", "int32"):
        assert tolerance.accumulation_unit(dtype) == EPS32


def test_only_float8_is_widened() -> None:
    eight, half = torch.ones(1).to(torch.float8_e5m2), torch.ones(1).half()
    widened = tolerance.widen_float8(eight, half, torch.ones(1, dtype=torch.int8), 3)
    kinds = [x.dtype if isinstance(x, torch.Tensor) else x for x in widened]
    assert kinds == [torch.float32, torch.float16, torch.int8, 3]


# ------------------------------------------------------------------------------------ judgement


def test_an_error_equal_to_the_allowed_one_is_right() -> None:
    value, allowed = doubles([1.0, 2.0]), doubles([0.25, 0.25])
    at, beyond = floats(1.25, 2.0), floats(1.2500001, 2.0)
    assert is_correct(at, value, allowed)
    assert judge(at, value, allowed).error_share == 1.0
    assert judge(at, value, allowed).max_abs_error == 0.25
    assert not is_correct(beyond, value, allowed)
    assert is_within(at, value, allowed)
    assert not is_within(beyond, value, allowed)


def test_an_exact_output_needs_no_allowed_error() -> None:
    value, none = doubles([1.0, 2.0]), doubles([0.0, 0.0])
    judged = judge(floats(1.0, 2.0), value, none)
    assert (judged.is_correct, judged.error_share, judged.max_abs_error) == (True, 0.0, 0.0)
    wrong = judge(floats(1.0, 2.5), value, none)
    assert (wrong.error_share, wrong.max_abs_error) == (math.inf, 0.5)
    assert wrong.wrong is not None
    assert wrong.wrong.tolist() == [False, True]


def test_nan_for_a_number_is_wrong_by_infinity() -> None:
    judged = judge(floats(math.nan, 2.5), doubles([1.0, 2.0]), doubles([1.0, 1.0]))
    assert judged.error_share == math.inf
    assert judged.max_abs_error == 0.5  # of the finite elements
    assert not is_correct(floats(math.nan, 2.0), doubles([1.0, 2.0]), doubles([1.0, 1.0]))
    assert not is_within(floats(math.nan), doubles([1.0]), doubles([1.0]))


def test_right_nonfinite_elements_leave_the_share_of_the_others() -> None:
    value, allowed = doubles([math.inf, math.nan, 1.0]), doubles([0.5, 0.5, 0.5])
    judged = judge(floats(math.inf, math.nan, 1.25), value, allowed)
    assert (judged.is_correct, judged.error_share, judged.max_abs_error) == (True, 0.5, 0.25)


@pytest.mark.parametrize(
    ("got", "value", "right"),
    [
        (math.inf, 0.999 * 65504, True),
        (math.inf, 0.9989 * 65504, False),
        (-math.inf, 0.9995 * 65504, False),
        (-math.inf, -70000.0, True),
        (math.inf, 70000.0, True),
        (math.nan, 70000.0, False),
    ],
)
def test_overflow_begins_at_the_largest_number(got: float, value: float, right: bool) -> None:
    output = torch.tensor([got], dtype=torch.float16)
    assert judge(output, doubles([value]), doubles([1.0])).is_correct is right


@pytest.mark.parametrize(
    ("got", "allowed", "right"),
    [(-math.inf, 700.0, True), (-math.inf, 600.0, False), (math.inf, 700.0, False)],
)
def test_an_allowed_error_may_lead_past_the_largest(
    got: float, allowed: float, right: bool
) -> None:
    """-64866 with an allowed error of 700 reaches -65566, which float16 does not hold."""
    output = torch.tensor([got], dtype=torch.float16)
    assert judge(output, doubles([-64866.0]), doubles([allowed])).is_correct is right


@pytest.mark.parametrize("kind", [list, tuple])
def test_very_many_outputs_are_cut_and_stay_what_they_are(kind: type) -> None:
    """A message on them says "a list" or "a tuple"."""
    cut = call_record.cut_outputs(kind([0.0] * 1_001))
    assert (type(cut), len(cut)) == (kind, 1_000)
    assert call_record.cut_outputs(few := kind([0.0] * 1_000)) is few


def test_pieces_are_judged_as_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    value = torch.zeros(3, 4, dtype=torch.float64)
    got = torch.zeros(3, 4)
    got[0, 1], got[2, 3] = 0.5, 3.0
    allowed = torch.ones(3, 1, dtype=torch.float64)
    whole = judge(got, value, allowed)
    monkeypatch.setattr(judgement, "PIECE_ELEMENTS", 5)
    pieces = judge(got, value, allowed)
    assert (pieces.error_share, pieces.max_abs_error) == (3.0, 3.0)
    assert (whole.error_share, whole.max_abs_error) == (3.0, 3.0)
    assert pieces.wrong is not None
    assert whole.wrong is not None
    assert torch.equal(pieces.wrong, whole.wrong)
    assert pieces.wrong.nonzero().tolist() == [[2, 3]]
    got[2, 3] = 0.25
    right = judge(got, value, allowed)
    assert (right.is_correct, right.error_share, right.max_abs_error) == (True, 0.5, 0.5)
    assert is_correct(got, value, allowed)
    assert is_within(got, value, allowed)
    got[2, 3] = 3.0
    assert not is_correct(got, value, allowed)
    monkeypatch.setattr(judgement, "PIECE_ELEMENTS", 1)
    assert not is_within(got, value, allowed)


def test_nothing_is_right() -> None:
    nothing = torch.empty(0)
    judged = judge(nothing, nothing.double(), nothing.double())
    assert (judged.error_share, judged.max_abs_error, judged.is_correct) == (0.0, 0.0, True)
    assert is_correct(nothing, nothing.double(), nothing.double())


def test_whole_numbers_are_within_only_where_they_are_equal() -> None:
    value = torch.tensor([3, 4])
    assert is_within(torch.tensor([3, 4]), value, doubles([9.0, 9.0]))
    assert not is_within(torch.tensor([3, 5]), value, doubles([9.0, 9.0]))
    assert judge(torch.tensor([3, 5]), value, doubles([9.0, 9.0])).is_correct


def test_finite_part_drops_what_is_not_finite() -> None:
    x = doubles([1.0, math.nan, math.inf, -math.inf])
    assert judgement.finite_part(x).tolist() == [1.0, 0.0, 0.0, 0.0]


# --------------------------------------------------------------------------------------- oracle


def softmax_op(**changes: Any) -> operators.Op:
    return dataclasses.replace(operators.load("softmax"), **changes)


CASE = Case(shape=(3, 8), dtype="float32", seed=1)


def test_one_output_that_shows_a_lower_precision_is_enough() -> None:
    op = softmax_op(reference=lambda x: (torch.zeros_like(x), torch.softmax(x, -1)))
    inputs = make_pristine(op, CASE, CPU)
    assert oracle.compute_expected(op, inputs, CASE, None, None).calibrated
    blind = softmax_op(reference=lambda x: (torch.zeros_like(x), torch.ones_like(x)))
    assert not oracle.compute_expected(blind, inputs, CASE, None, None).calibrated


def test_the_stated_rtol_is_that_of_the_dtype() -> None:
    op = softmax_op(reference=lambda x: x * 1.0, op_class="elementwise")
    for dtype, stated in (("float32", 1e-5), ("float16", 1e-3), ("bfloat16", 8e-3)):
        inputs = (torch.ones(4, 4, dtype=getattr(torch, dtype)),)
        case = Case(shape=(4, 4), dtype=dtype, seed=1)
        expected = oracle.compute_expected(
            op, inputs, case, None, None, conditioning=oracle.Conditioning.NONE
        )
        assert expected.allowed[0].flatten().tolist() == pytest.approx([2 * stated] * 16)
        assert expected.tolerance.rtol == stated


def test_own_rtol_and_atol_reach_the_allowed_errors() -> None:
    op = softmax_op(reference=lambda x: x * 1.0, op_class="elementwise")
    inputs = (torch.ones(4, 4),)
    for rtol, atol, each in ((1e-7, None, 1e-7), (None, 1e-7, 1e-5 + 1e-7), (0.5, 0.25, 0.75)):
        expected = oracle.compute_expected(
            op, inputs, CASE, rtol, atol, conditioning=oracle.Conditioning.NONE
        )
        assert expected.allowed[0].flatten().tolist() == pytest.approx([each] * 16)
        assert expected.tolerance.origin == "yours"


def test_rows_or_the_whole_set_the_scale() -> None:
    inputs = (torch.tensor([[1.0, 1.0], [9.0, 9.0]]),)
    rows = softmax_op(reference=lambda x: x * 1.0, op_class="row")
    whole = softmax_op(reference=lambda x: x * 1.0, op_class="elementwise")
    for op, first in ((rows, 2e-5), (whole, 1e-5 * (1 + math.sqrt(41)))):
        expected = oracle.compute_expected(
            op, inputs, CASE, None, None, conditioning=oracle.Conditioning.NONE
        )
        assert float(expected.allowed[0][0, 0]) == pytest.approx(first)


def test_conditioning_is_the_largest_step_of_seventeen() -> None:
    op = softmax_op(reference=lambda x: x * 1.0, op_class="elementwise")
    inputs = (torch.full((2, 2), 1.0),)
    *_, (step,) = oracle._iter_steps(op, inputs, (inputs[0].double(),), "float32")
    # The input and the result each move by one unit; both upwards in one of them.
    assert step.flatten().tolist() == pytest.approx([2 * EPS32] * 4, rel=1e-3)


def test_exact_is_called_in_float64_only() -> None:
    op = softmax_op(reference=lambda x: x + 1.0, exact=lambda x: x + 2.0)
    x = torch.zeros(2, 2)
    assert oracle.evaluate(op, (x,))[0].flatten().tolist() == [1.0] * 4
    assert oracle.evaluate(op, (x.double(),))[0].flatten().tolist() == [2.0] * 4
    assert oracle.evaluate(op, (x.double(),), with_exact=False)[0].flatten().tolist() == [1.0] * 4


def test_inputs_that_an_op_changes_are_its_last_outputs() -> None:
    def adds(x: torch.Tensor) -> None:
        x.add_(1.0)

    op = softmax_op(reference=adds, mutates=(0,))
    x = torch.zeros(2, 2)
    shown = oracle.compute_torch_outputs(op, (x,))
    assert shown.outputs[0].flatten().tolist() == [1.0] * 4
    assert (shown.returned, shown.returns_tensor) == ((), True)
    assert x.sum() == 0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: None, "returns nothing; it must return tensors; an op that changes its inputs"),
        (lambda x: [x, "y"], "returns a str; it must return tensors$"),
        (
            lambda x: torch.empty(2, device="meta"),
            "returns a tensor on meta, its inputs",
        ),
    ],
)
def test_reference_returns_tensors_on_the_device(returned: Any, message: str) -> None:
    with pytest.raises(UserFault, match=message):
        oracle.evaluate(softmax_op(reference=returned), (torch.zeros(2),))


def test_failure_of_the_reference_names_its_inputs() -> None:
    def fails(*_inputs: Any) -> None:
        raise ValueError("no")

    message = r"the reference raised ValueError: no; its inputs were float32 \[2, 3\], 7\."
    with pytest.raises(UserFault, match=message):
        oracle.evaluate(softmax_op(reference=fails), (torch.zeros(2, 3), 7))


def test_out_of_memory_of_the_reference_is_no_fault_of_the_op() -> None:
    def fails(_x: torch.Tensor) -> None:
        raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        oracle.evaluate(softmax_op(reference=fails), (torch.zeros(2),))


def test_values_are_in_float64_and_integers_keep_their_dtype() -> None:
    x, whole = torch.ones(1), torch.ones(1, dtype=torch.int32)
    for widen in (oracle.double_floats, oracle.upcast):
        assert [t.dtype for t in widen((x, whole))] == [torch.float64, torch.int32]
    assert oracle.upcast((3,)) == (3,)


def test_exact_is_called_where_one_input_is_in_float64() -> None:
    op = softmax_op(reference=lambda x, n: x + 1.0, exact=lambda x, n: x + 2.0)
    x, n = torch.zeros(2, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    assert oracle.evaluate(op, (x, n))[0].tolist() == [2.0, 2.0]


def test_every_second_evaluation_moves_results_in_one_direction() -> None:
    is_coherent = []

    def reference(x: torch.Tensor) -> torch.Tensor:
        is_coherent.append(len(set(torch.ones(64, dtype=torch.float64).mul(1.0).tolist())) == 1)
        return x * 1.0

    op = softmax_op(reference=reference, op_class="elementwise")
    [*oracle._iter_steps(op, (torch.ones(2),), (doubles([1.0, 1.0]),), "float32")]
    without_sums = [True]  # not moved: the reference adds nothing, so one such evaluation is enough
    n = oracle.STAGES[0][0]
    moved = [True, False] * 11 + [True]
    assert is_coherent == moved[:n] + without_sums + moved[n:]
