"""Every guard of a validation has a kernel that it catches; right kernels pass all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.harness import KERNELS, cases_for, run_cases, told
from triton_magics.model import CaseStatus

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is an input here
FILES = sorted(KERNELS.glob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_kernel_gets_the_verdict_that_its_file_names(path: Path) -> None:
    wanted = CaseStatus(told(path, "status"))
    results = run_cases(path, *cases_for(told(path, "op")))
    statuses = {r.status for r in results}
    if wanted is CaseStatus.PASSED:
        assert statuses == {CaseStatus.PASSED}, [r.reason or r.error or r.mismatch for r in results]
    else:
        assert wanted in statuses, statuses


def test_every_status_that_a_cpu_can_show_has_its_kernel() -> None:
    needs_a_gpu_or_an_engine = {
        CaseStatus.WRONG_DEVICE, CaseStatus.COMPILE_ERROR, CaseStatus.TIMEOUT, CaseStatus.CRASHED,
        CaseStatus.OUT_OF_MEMORY, CaseStatus.INTERRUPTED, CaseStatus.NOT_RUN,
    }  # fmt: skip
    shown = {CaseStatus(told(path, "status")) for path in FILES}
    assert shown == set(CaseStatus) - needs_a_gpu_or_an_engine
