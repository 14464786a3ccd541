"""A cause that shows where a part of the inputs is computed alone."""

from __future__ import annotations

import pytest

from tests.harness.kit import run_cases
from tests.harness.test_cases_beside import UNSEEN
from triton_magics.harness.correctness.part_alone import CARRIED
from triton_magics.model import Case, CaseResult, CaseStatus

pytestmark = pytest.mark.in_turn

ROWS = Case(shape=(201, 13), dtype="float32", special="rows of every kind", seed=3)


def result_of(kernel: str, case: Case) -> CaseResult:
    (result,) = run_cases(UNSEEN / f"{kernel}.py", case)
    assert result.status is CaseStatus.WRONG_VALUES
    return result


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        ("twentyfourth_after/layer_norm_shift_of_row_before", ROWS),
        ("fifth/softmax_maximum_stays_with_the_program", ROWS.evolve(shape=(601, 13))),
        pytest.param(
            "twentyfourth/mha_maximum_of_last_tile",
            Case(shape=(3, 47, 7, 16), dtype="float32", special="heads of two scales", seed=3),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_value_that_a_program_carries_is_named(kernel: str, case: Case) -> None:
    result = result_of(kernel, case)
    assert result.mismatch is not None
    assert result.mismatch.cause is not None
    assert result.mismatch.cause.evidence == CARRIED


@pytest.mark.parametrize(
    ("kernel", "case"),
    [
        (
            "twentyfourth_after/rms_norm_scale_of_first_block",
            Case(
                shape=(3, 8209), dtype="float16", special="one element as heavy as the others",
                seed=3,
            ),
        ),
        (
            "eighth/sum_stops_at_the_padding",
            Case(shape=(17, 8209), dtype="float32", special="composed rows", seed=3),
        ),
    ],
)  # fmt: skip
def test_a_row_that_is_wrong_alone_carries_nothing(kernel: str, case: Case) -> None:
    result = result_of(kernel, case)
    cause = result.mismatch and result.mismatch.cause
    assert cause is None or cause.evidence != CARRIED
