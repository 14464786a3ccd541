# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The worker that starts profilers: it calls no version, stays for the next one, and ends whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag: a fixture)
    VERSION,
    cancel_running,
    is_running,
    process_tag,
    read_facts,
    read_pid,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution import LocalExecutor
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import ProfileJob
from triton_magics.execution.protocol import Progress
from triton_magics.model import Case


@pytest.fixture
def engine(process_tag: str) -> Iterator[LocalExecutor]:
    engine = scripted_executor(device="gpu")
    yield engine
    engine.close()


def profiling(action: str) -> ProfileJob:
    """Return a profile in which `obeys.py` runs its function of that name."""
    case = Case(shape=(2, 2), dtype="float32", seed=1)
    return ProfileJob(op=OpRef(name=action), version=VERSION, case=case)


def test_the_next_profile_has_the_same_worker(engine: LocalExecutor) -> None:
    facts = read_facts(run(engine, profiling("answers"), key="a"))
    assert "tools" in facts["argv"]
    other = read_pid(run(engine, scripted_job("answers"), key="b"))
    assert other != facts["pid"]
    assert read_pid(run(engine, profiling("answers"), key="c")) == facts["pid"]
    assert is_running(other)


def test_a_worker_that_left_a_process_is_replaced(engine: LocalExecutor) -> None:
    first = run(engine, profiling("leaves_a_daemon_alone"), key="a")
    assert first.status == "finished"
    second = read_pid(run(engine, profiling("answers"), key="a"))
    assert second != read_pid(first)
    assert not is_running(read_pid(first))


def test_an_interrupted_profile_ends_its_worker(engine: LocalExecutor) -> None:
    pid = read_pid(run(engine, profiling("answers")))
    outcome = run(engine, profiling("hangs"), on_progress=lambda _: cancel_running(engine))
    assert outcome.status == "interrupted"
    wait_until(lambda: not is_running(pid))
    assert read_pid(run(engine, profiling("answers"))) != pid


def test_an_interrupted_profile_leaves_no_process_and_no_file(engine: LocalExecutor) -> None:
    stages: list[str] = []

    def stop(progress: Progress) -> None:
        if "/" in progress.stage:
            stages.append(progress.stage)
            cancel_running(engine)

    assert run(engine, profiling("hangs_with_a_tool"), on_progress=stop).status == "interrupted"
    tool, file = stages[0].split()
    wait_until(lambda: not is_running(int(tool)))
    wait_until(lambda: not Path(file).parent.exists())
