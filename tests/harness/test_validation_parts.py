"""The parts of a validation: together they are the whole, whatever their number."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.kit import KERNELS, run_validation
from triton_magics.harness.correctness.case_parts import LATER_WORK, select_part
from triton_magics.model import Case, CaseStatus, Status, Validation
from triton_magics.model.overall_verdict import join_parts

pytestmark = pytest.mark.in_turn

DTYPES = ("float32", "float16")
WHOLE: dict[str, object] = {"dtypes": DTYPES, "plan": "quick", "budget_s": None}


def _case(i: int, dtype: str, **fields: object) -> Case:
    return Case(shape=(i, 3), dtype=dtype, seed=i, **fields)


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7])
def test_each_case_is_in_one_part_and_the_parts_are_even(parts: int) -> None:
    cases = [_case(i, d, special="zeros") for i in range(1, 51) for d in DTYPES]
    chosen = [select_part(cases, DTYPES, part, parts) for part in range(parts)]
    assert sorted(cases.index(c) for part in chosen for c in part) == list(range(100))
    later = min(LATER_WORK, 100 // parts) if parts > 1 else 0  # the last part runs them too
    sizes = [*map(len, chosen[:-1]), len(chosen[-1]) + later]
    assert {*sizes} <= {(100 + later) // parts, (100 + later) // parts + 1}
    assert all(part == sorted(part, key=cases.index) for part in chosen)
    assert len({c.dtype for c in select_part(cases, DTYPES, 1, 2)}) == 1


def test_a_case_that_is_called_in_a_row_counts_as_several() -> None:
    usual = [_case(i, "float32") for i in range(1, 31)]
    others = [_case(i, "float16", special="zeros") for i in range(1, 121)]
    first, second = (select_part([*usual, *others], DTYPES, part, 2) for part in range(2))
    assert set(first) >= {*usual}
    assert len(first) - len(usual) == (4 * 30 + 120 + LATER_WORK) // 2 - 4 * 30
    assert len(second) == 120 - (len(first) - len(usual))


def _whole_and_joined(kernel: Path) -> tuple[Validation, Validation]:
    whole = run_validation(kernel, **WHOLE)
    parts = [run_validation(kernel, **WHOLE, part=i, parts=2) for i in range(2)]
    assert 0 < len(parts[0].cases) < len(whole.cases)
    return whole, join_parts(parts, [result.case for result in whole.cases])


def test_parts_of_a_right_kernel_make_the_verdict_of_the_whole() -> None:
    whole, joined = _whole_and_joined(KERNELS / "softmax_right.py")
    assert joined.status is whole.status is Status.PASSED
    for field in ("dtypes", "triton_kernels", "computed_by", "scope", "request", "badges"):
        assert getattr(joined, field) == getattr(whole, field), field
    verdicts = [[(r.case, r.status, r.calibrated) for r in v.cases] for v in (whole, joined)]
    assert verdicts[0] == verdicts[1]


def test_a_fault_in_one_dtype_fails_the_whole(tmp_path: Path) -> None:
    source = (KERNELS / "softmax_right.py").read_text()
    head = "def triton_softmax(x):\n"
    assert head in source
    path = tmp_path / "returns_halves.py"
    path.write_text(
        source.replace(head, head + "    if x.element_size() == 2:\n        return x\n")
    )
    whole, joined = _whole_and_joined(path)
    assert joined.status is whole.status is Status.FAILED
    failed = [{r.case for r in v.cases if r.status.failed} for v in (whole, joined)]
    assert failed[0] == failed[1]
    assert {case.dtype for case in failed[0]} == {"float16"}
    assert any(r.status is CaseStatus.PASSED for r in joined.cases)


def test_a_version_that_can_not_be_loaded_keeps_its_error(tmp_path: Path) -> None:
    path = tmp_path / "fails_to_load.py"
    path.write_text('"""It divides while it is imported.\n\nop: softmax\n"""\n1 / 0\n')
    parts = [run_validation(path, **WHOLE, part=i, parts=2) for i in range(2)]
    joined = join_parts(parts, ())
    assert joined.status is parts[0].status is Status.RUNTIME_ERROR
    assert joined.error == parts[0].error
