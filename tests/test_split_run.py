# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""A validation on several workers: who helps, what their answers become, what stays behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, release: fixtures)
    JOB_S,
    SILENCE_S,
    VERSION,
    command,
    process_tag,
    release,
    run,
    scripted_job,
    wait_until,
)

from triton_magics.config import Settings
from triton_magics.execution import Device, Limits, LocalExecutor
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.execution.protocol import Progress
from triton_magics.model import Case, CaseStatus, Status, Validation

DTYPES = ("float32", "float16", "bfloat16")
GPU = Device(id="GPU-a", kind="gpu", name="a script")


@pytest.fixture
def executor() -> Iterator[LocalExecutor]:
    """Return an executor of one GPU, as a script plays it, with three standbys."""
    executor = LocalExecutor(
        Settings(standbys=3, silence_s=SILENCE_S, job_s=JOB_S),
        command=lambda mode: command("obeys.py", mode),
        devices=(GPU,),
    )
    yield executor
    executor.close()


def job(action: str, **changes: object) -> ValidateJob:
    return ValidateJob(op=OpRef(name=action), version=VERSION, seed=1, **changes)


def wait_for_standbys(executor: LocalExecutor, n: int = 3) -> None:
    executor.warm("gpu")

    def are_ready() -> bool:
        executor.queue().update()
        return executor.queue().pool.n_ready("gpu") == n

    wait_until(are_ready)


def test_two_workers_share_a_validation(executor: LocalExecutor) -> None:
    wait_for_standbys(executor)
    steps: list[Progress] = []
    outcome = run(executor, job("validates_a_part"), key="a", on_progress=steps.append)
    assert outcome.status == "finished"
    verdict = outcome.answer
    assert isinstance(verdict, Validation)
    assert verdict.status is Status.PASSED
    # In the order of the plan, each case once, and the kernels of both parts.
    assert [result.case.dtype for result in verdict.cases] == list(DTYPES)
    assert verdict.triton_kernels == ("kernel_0", "kernel_1")
    done = [s for s in steps if s.case_result]
    assert [s.done for s in done] == [1, 2, 3]
    assert done[-1].total == 3  # the first may come before the plan, from the other part
    # The helper has run the version's code: it is gone.
    wait_until(lambda: len(executor.queue().pool.members) == 4)
    assert run(executor, job("validates_a_part"), key="a").status == "finished"


def test_one_standby_is_left_for_the_next_job(executor: LocalExecutor) -> None:
    wait_for_standbys(executor)
    pool = executor.queue().pool
    assert len(pool.take_available("gpu", leave=1, at_most=2)) == 2
    assert pool.take_available("gpu", leave=1, at_most=2) == []
    assert pool.n_ready("gpu") == 1


@pytest.mark.parametrize(
    ("cores", "settings", "n"),
    [
        (15, {}, 3),
        (16, {}, 4),
        (16, {"lanes": 2}, 2),
        (16, {"standbys": 1}, 1),
        (2, {"standbys": 5}, 5),
    ],
)
def test_a_gpu_with_one_lane_has_a_standby_more(
    monkeypatch: pytest.MonkeyPatch, cores: int, settings: dict[str, int], n: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    executor = LocalExecutor(
        Settings(**settings), command=lambda mode: command("obeys.py", mode), devices=(GPU,)
    )
    try:
        wait_for_standbys(executor, n)
    finally:
        executor.close()


@pytest.mark.parametrize("changes", [{"plan": "quick"}, {"sanitize": True}, {"shapes": ((2, 3),)}])
def test_few_cases_are_not_split(executor: LocalExecutor, changes: dict[str, object]) -> None:
    assert not job("validates_a_part", **changes).can_be_split
    assert job("validates_a_part").can_be_split


def test_nobody_helps_while_a_job_waits(executor: LocalExecutor, release: Path) -> None:
    wait_for_standbys(executor)
    first = executor.submit(scripted_job("waits_for_a_file"), limits=Limits(SILENCE_S, JOB_S))
    shared = executor.submit(job("validates_a_part"), limits=Limits(SILENCE_S, JOB_S))
    last = executor.submit(scripted_job("answers"), limits=Limits(SILENCE_S, JOB_S))
    release.touch()
    verdict = shared.result(60).answer
    assert isinstance(verdict, Validation)
    assert verdict.triton_kernels == ("kernel_0",)  # of one worker
    assert len(verdict.cases) == 3
    assert {first.result(60).status, last.result(60).status} == {"finished"}


def test_a_helper_that_crashes_ends_the_job_and_loses_no_case(
    executor: LocalExecutor, release: Path
) -> None:
    wait_for_standbys(executor)
    passed: list[Progress] = []

    def crash_after_two(step: Progress) -> None:
        passed.extend([step] if step.case_result else [])
        if len(passed) == 2:
            release.touch()

    outcome = run(executor, job("crashes_in_the_last_part"), key="a", on_progress=crash_after_two)
    assert outcome.status == "crashed"
    assert outcome.exit == "SIGSEGV"
    assert outcome.answer is None
    assert len(outcome.planned) == 3
    assert [result.status for result in outcome.cases] == [CaseStatus.PASSED] * 2
    assert outcome.case == Case(shape=(2, 3), dtype="bfloat16", seed=7)
    assert run(executor, scripted_job("answers"), key="b").status == "finished"
