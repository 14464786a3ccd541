"""Tests of the explanation of a wrong output: where, why, and what to change."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from triton_magics.harness.correctness import mismatch
from triton_magics.languages.triton.child.source_hints import explain_symptom
from triton_magics.model import Case


def explain_outputs(
    got: torch.Tensor, value: torch.Tensor, source: str = "", **case: object
) -> mismatch.Mismatch:
    allowed = torch.full_like(value, 1e-6)
    wrong = ~((got.double() - value).abs() <= allowed)
    fields = {"shape": tuple(value.shape), "dtype": "float32", "seed": 0, **case}
    return mismatch.describe(
        got, value, allowed, wrong, case=Case(**fields), hint=lambda s: explain_symptom(s, source)
    )


def code_of(explanation: mismatch.Mismatch) -> str | None:
    return explanation.cause and explanation.cause.code


VALUE = torch.linspace(1, 2, 12 * 20, dtype=torch.float64).reshape(12, 20)


def test_wrong_tail_is_located_in_the_last_columns() -> None:
    got = VALUE.clone()
    got[:, -3:] += 1
    explanation = explain_outputs(got, VALUE)
    assert explanation.where == "all in the last 3 of 20 columns"
    assert explanation.n_wrong == 36
    assert code_of(explanation) == "last_block"
    assert explanation.picture[0][-1] == 1.0
    assert explanation.picture[0][0] == 0.0


def test_constant_factor_is_explained() -> None:
    explanation = explain_outputs(VALUE * 2.5, VALUE)
    assert explanation.where == "every element"
    assert explanation.cause is not None
    assert (explanation.cause.code, explanation.cause.factor) == (
        "constant_factor",
        pytest.approx(2.5),
    )


def test_equal_elements_show_no_constant_factor() -> None:
    same = torch.full_like(VALUE, 3.0)
    assert code_of(explain_outputs(same * 2.5, same)) is None


def test_every_kth_column_is_recognised() -> None:
    got = VALUE.clone()
    got[:, 1::4] += 1
    assert explain_outputs(got, VALUE).where == "every 4th column, from column 1"


def test_a_layout_alone_is_no_cause() -> None:
    got = VALUE + torch.rand(VALUE.shape, dtype=torch.float64) + 0.1
    assert code_of(explain_outputs(got, VALUE, layouts=(("*", "transposed"),))) is None


NOISE = torch.linspace(-1, 1, VALUE.numel(), dtype=torch.float64).reshape(VALUE.shape)
ROUGH = VALUE * (1 + 5e-4 * NOISE)
UNMASKED = "cols = tl.arange(0, BLOCK)\nx = tl.load(p + cols)\nn = tl.load(n_ptr)"
UNFILLED = "x = tl.load(p + cols, mask=mask).to(tl.float32)\ny = tl.max(x, axis=0)"
NAN = torch.where(NOISE > 0.9, torch.nan, VALUE)
UNWRITTEN = torch.where(NOISE > 0.9, torch.tensor(-1).view(torch.float64), VALUE)
# (output, source, fields of the case, the cause)
HAS_IT_OR_LOOKS_LIKE_IT = [
    (ROUGH, "acc += tl.dot(a, b)", {}, "lower_precision"),
    (ROUGH, 'acc += tl.dot(a, b, input_precision="ieee")', {}, None),
    (ROUGH, "y = tl.exp2(x)", {}, None),
    (VALUE * (1 + 0.01 * NOISE), "acc += x", {"dtype": "float16"}, "lower_precision"),
    (VALUE * (1 + 0.01 * NOISE), "acc += x.to(tl.float32)", {"dtype": "float16"}, None),
    (NAN, UNMASKED, {}, "missing_mask"),
    (NAN, "x = tl.load(x_ptr)", {}, "unset_memory"),
    (NAN, UNMASKED + "\ny = tl.load(q + cols)", {}, "unset_memory"),
    (NAN, UNMASKED, {"regime": "large"}, None),
    (UNWRITTEN, "", {"regime": "large"}, "unset_memory"),
    (VALUE * 0.9 + 0.01 * NOISE, UNFILLED, {}, "wrong_fill"),
    (VALUE * 0.9 + 0.01 * NOISE, UNFILLED + "\nx = tl.where(mask, x, 0)", {}, None),
    (VALUE * 0.9 + 0.01 * NOISE, UNFILLED.replace("max", "sum"), {}, None),
    (VALUE * 0, "", {}, "zeros"),
]


@pytest.mark.parametrize(("got", "source", "case", "code"), HAS_IT_OR_LOOKS_LIKE_IT)
def test_cause_is_right_or_absent(
    got: torch.Tensor, source: str, case: dict[str, str], code: str | None
) -> None:
    assert code_of(explain_outputs(got, VALUE, source=source, **case)) == code


def test_a_load_without_other_is_named_with_its_line_and_mended() -> None:
    explanation = explain_outputs(VALUE * 0.9 + 0.01 * NOISE, VALUE, "import triton\n" + UNFILLED)
    assert explanation.cause is not None
    assert explanation.cause.file_line == 2
    assert explanation.cause.advice == (
        'x = tl.load(p + cols, mask=mask, other=-float("inf")).to(tl.float32)  # 0.0 for a sum'
    )


def test_the_picture_is_at_most_16_by_48(tmp_path: Path) -> None:
    value = torch.ones(300, 1000, dtype=torch.float64)
    picture = explain_outputs(value + 1, value).picture
    assert (len(picture), len(picture[0])) == (16, 48)


@pytest.mark.parametrize(
    ("got", "value", "code"),
    [
        ([1.0, 2.0, 3.0], [1.0, math.nan, math.inf], "nan_lost"),
        ([1.0, math.inf, 3.0], [1.0, math.nan, 3.0], "nan_lost"),
        ([1.0, math.nan, math.nan], [1.0, math.inf, -math.inf], "reach"),
        ([1.0, -math.inf, 3.0], [1.0, math.inf, 3.0], None),
        ([1.5, 2.0, 3.0], [1.0, math.nan, 3.0], None),
    ],
)
def test_nonfinite_values_that_the_reference_alone_has(
    got: list[float], value: list[float], code: str | None
) -> None:
    """A sign that is lost is another fault, and so is a wrong number beside the lost NaN."""
    output, expected = (torch.tensor(row, dtype=torch.float64) for row in (got, value))
    wrong = ~((output == expected) | (output.isnan() & expected.isnan()))
    case = Case(shape=(3,), dtype="float32", special="nonfinite", seed=0)
    explanation = mismatch.describe(
        output, expected, torch.ones(3), wrong, case=case, hint=lambda _: None
    )
    assert code_of(explanation) == code


@pytest.mark.parametrize(
    ("rows", "is_named"),
    [((2, 6), True), ((4, 8), True), ((2, 5), False), ((2, 8), False), ((2,), False)],
)
def test_nan_that_spreads_to_the_row_beside_it_is_named(
    rows: tuple[int, ...], is_named: bool
) -> None:
    """Rows 3 and 7 should have NaN. One row alone may be there by chance."""
    value, got = VALUE.clone(), VALUE.clone()
    value[[3, 7]] = got[[3, 7]] = math.nan
    got[list(rows)] = math.nan
    wrong = got.isnan() & value.isfinite()
    case = Case(shape=(12, 20), dtype="float32", special="nonfinite", seed=0)
    allowed = torch.full_like(value, 1e-6)
    explained = mismatch.describe(got, value, allowed, wrong, case=case, hint=lambda s: None)
    cause = explained.cause
    assert (cause is not None and "of another row" in (cause.evidence or "")) is is_named


@pytest.mark.parametrize("is_unset", [False, True])
def test_nan_of_one_part_in_another_is_named(is_unset: bool) -> None:
    """The parts of such a case need not lie side by side."""
    value = VALUE.clone()
    value[[3, 7]] = math.nan
    got = value.clone()
    got[[0, 10]] = math.nan
    if is_unset:
        got.view(torch.int64)[[0, 10]] = -1  # every bit set
    wrong = got.isnan() & value.isfinite()
    case = Case(shape=(12, 20), dtype="float32", special="NaN in some parts", seed=0)
    allowed = torch.full_like(value, 1e-6)
    explained = mismatch.describe(got, value, allowed, wrong, case=case, hint=lambda s: None)
    assert code_of(explained) == ("unset_memory" if is_unset else "reach")


def test_memory_that_was_never_written_is_no_nan_of_another_row() -> None:
    value = VALUE.clone()
    value[[3, 7]] = math.nan
    got = value.clone()
    got.view(torch.int64)[[2, 6]] = -1  # every bit set
    wrong = got.isnan() & value.isfinite()
    case = Case(shape=(12, 20), dtype="float32", special="nonfinite", seed=0)
    allowed = torch.full_like(value, 1e-6)
    explained = mismatch.describe(got, value, allowed, wrong, case=case, hint=lambda s: None)
    assert code_of(explained) == "unset_memory"
