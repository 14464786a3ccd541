"""What all wrong cases have in common, and no right one has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, run_validation, version_of
from triton_magics.harness.correctness.failure_pattern import MIN_PASSED, find_pattern
from triton_magics.model import Case, CaseResult, CaseStatus, FailurePattern

SOURCE = version_of(KERNELS / "softmax_right.py", "softmax")
TRANSPOSED = {"layouts": (("x", "transposed"),)}


def result(status: CaseStatus, n: int, **changes: object) -> CaseResult:
    case = Case(shape=(n, 3), dtype="float32", seed=1).evolve(**changes)
    share = 0.5 if status is CaseStatus.PASSED else None
    return CaseResult(case=case, status=status, error_share=share)


def wrong(n: int, **changes: object) -> CaseResult:
    return result(CaseStatus.WRONG_VALUES, n, **changes)


PASSED = [result(CaseStatus.PASSED, n) for n in range(MIN_PASSED)]


def nothing(case: Case) -> None:
    return None


@pytest.mark.parametrize(
    ("failed", "condition"),
    [
        ([wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED)], "x transposed"),
        ([wrong(1, dtype="float16"), wrong(2, dtype="float16", regime="x10")], "float16"),
        ([wrong(1, scalars=(("p", 0.5),)), wrong(2, scalars=(("p", 0.5),))], "p=0.5"),
        ([wrong(1, special="zeros"), wrong(2, special="zeros")], "zeros"),
    ],
)
def test_a_value_of_all_wrong_cases_alone_is_named(
    failed: list[CaseResult], condition: str
) -> None:
    expected = FailurePattern(condition=condition, n_failed=2, n_passed=MIN_PASSED)
    assert find_pattern([*PASSED, *failed], nothing, SOURCE) == expected


@pytest.mark.parametrize(
    "results",
    [
        [*PASSED, wrong(1, **TRANSPOSED)],  # one may have much by chance
        [*PASSED[1:], wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED)],
        [*PASSED, wrong(1, **TRANSPOSED), wrong(2)],
        [*PASSED, wrong(1), wrong(2)],
        [*PASSED, wrong(1, **TRANSPOSED), wrong(2, **TRANSPOSED),
         result(CaseStatus.PASSED, 3, **TRANSPOSED)],
    ],
)  # fmt: skip
def test_what_a_right_case_has_or_few_cases_have_is_no_pattern(results: list[CaseResult]) -> None:
    assert find_pattern(results, nothing, SOURCE) is None


def test_one_wrong_case_has_the_relation_that_it_was_added_for() -> None:
    text = "kernel: n is several blocks of BLOCK"
    one = wrong(51, extent=text)

    def relations_of(case: Case) -> frozenset[str]:
        return frozenset({text, "kernel: n_rows = BLOCK"} if case.shape[0] > 50 else ())

    found = find_pattern([*PASSED, one], relations_of, SOURCE)
    assert found
    assert (found.n_failed, found.condition) == (1, text)
    assert find_pattern([*PASSED, wrong(51)], relations_of, SOURCE) is None


def test_a_line_of_the_wrapper_is_named_before_a_relation() -> None:
    texts = SOURCE.source.splitlines()
    line = next(i for i, text in enumerate(texts, 1) if "next_power_of_2" in text)
    step = f"triton_softmax: line {line - 1} to {line}, operation 10 to 12"

    def relations_of(case: Case) -> frozenset[str]:
        return frozenset({step, "kernel: n < BLOCK"} if case.shape[0] > 50 else ())

    found = find_pattern([*PASSED, wrong(51), wrong(52)], relations_of, SOURCE)
    assert found  # the cell has one line more, its magic
    assert found.condition == f"cell line {line + 1} runs: `{texts[line - 1].strip()}`"


def test_a_verdict_names_the_path_that_is_wrong(tmp_path: Path) -> None:
    text = (KERNELS / "softmax_right.py").read_text()
    right = "    BLOCK_SIZE = triton.next_power_of_2(n_cols)\n"
    wrong_path = "    if n_rows * n_cols % 48 == 0 and n_cols > 64:\n        BLOCK_SIZE //= 2\n"
    assert right in text
    (path := tmp_path / "kernel.py").write_text(text.replace(right, right + wrong_path))
    pattern = run_validation(path, budget_s=10.0).pattern
    assert pattern
    assert pattern.condition.endswith("runs: `BLOCK_SIZE //= 2`")
    assert pattern.n_failed >= 2
