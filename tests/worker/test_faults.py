"""Every guard of a validation has a kernel that it catches; right kernels pass all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.worker.harness import KERNELS, run_cases, told
from triton_magics.model import Case, CaseStatus

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NaN is an input here
FILES = sorted(KERNELS.glob("*.py"))


def cases_for(op: str) -> tuple[Case, ...]:
    """Few, small and hostile."""
    shape = (33, 29, 45) if op == "matmul" else (7, 13)
    wide = (5, 65, 80) if op == "matmul" else (2, 1025)
    made = [
        Case(shape=shape, dtype="float32", seed=1),
        Case(shape=wide, dtype="float32", seed=2),
        Case(shape=shape, dtype="float32", layout="transposed", seed=3),
        Case(shape=shape, dtype="float32", regime="x10", seed=4),
        Case(shape=shape, dtype="float16", seed=5),
    ]
    if op not in ("matmul", "sum", "layer_norm"):
        made.append(Case(shape=shape, dtype="float32", regime="large", seed=6))
    if op == "layer_norm":
        made.append(Case(shape=shape, dtype="float32", regime="mean_heavy", seed=7))
    return tuple(made)


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
