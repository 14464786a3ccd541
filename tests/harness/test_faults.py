"""Every guard of a validation has a kernel that it catches; right kernels pass all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.harness.kit import KERNELS, cases_for, field_of, run_cases
from triton_magics.harness.correctness import oracle
from triton_magics.harness.correctness.call_record import CallRecord, DataFlow
from triton_magics.harness.correctness.output_checks import check_form
from triton_magics.model import Case, CaseStatus

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is an input here
FILES = sorted(KERNELS.glob("*.py"))
SHOWN = [path for path in FILES if "\nneeds: gpu" not in path.read_text()]


@pytest.mark.in_turn
@pytest.mark.parametrize("path", SHOWN, ids=lambda p: p.stem)
def test_a_kernel_gets_the_verdict_that_its_file_names(path: Path) -> None:
    expected = CaseStatus(field_of(path, "status"))
    results = run_cases(path, *cases_for(field_of(path, "op")))
    statuses = {r.status for r in results}
    if expected is CaseStatus.PASSED:
        assert statuses == {CaseStatus.PASSED}, [r.reason or r.error or r.mismatch for r in results]
    else:
        assert expected in statuses, statuses


def test_every_status_of_a_case_has_its_kernel() -> None:
    needs_an_engine = {
        CaseStatus.COMPILE_ERROR, CaseStatus.TIMEOUT, CaseStatus.CRASHED,
        CaseStatus.OUT_OF_MEMORY, CaseStatus.INTERRUPTED, CaseStatus.NOT_RUN,
        CaseStatus.TAMPERED, CaseStatus.SIDE_EFFECT,
    }  # fmt: skip
    shown = {CaseStatus(field_of(path, "status")) for path in FILES}
    assert shown == set(CaseStatus) - needs_an_engine


def test_an_answer_on_another_device_is_named() -> None:
    case = Case(shape=(2, 3), dtype="float32", seed=1)
    native = oracle.TorchOutputs((torch.ones(2, 3),), (torch.ones(2, 3),), returns_tensor=True)
    elsewhere = torch.empty(2, 3, device="meta")
    result = check_form(case, CallRecord(elsewhere, (elsewhere,), DataFlow()), native)
    assert result
    assert result.status is CaseStatus.WRONG_DEVICE
    assert result.reason == "returned a tensor on meta, should be cpu"
