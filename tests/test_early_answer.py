# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The answer of a compilation that goes on: its caller has it, the next job waits for the rest."""

from __future__ import annotations

from pathlib import Path
from queue import SimpleQueue

from execution_kit import (  # noqa: F401 (engine, release: fixtures)
    VERSION,
    engine,
    next_job_finishes,
    release,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution import JobEvent, LocalExecutor
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import CompileJob, RunJob
from triton_magics.model import Compilation


def compilation(action: str) -> CompileJob:
    return CompileJob(op=OpRef(name=action), version=VERSION)


def test_the_caller_has_the_answer_before_the_rest_is_compiled(
    engine: LocalExecutor, release: Path
) -> None:
    events: SimpleQueue[JobEvent] = SimpleQueue()
    handle = engine.submit(compilation("answers_early"), on_event=events.put)
    outcome = handle.result(60.0)
    assert not release.exists()  # so the worker is not done
    assert (outcome.status, outcome.output) == ("finished", "importing\n")
    assert isinstance(outcome.answer, Compilation)
    following = engine.submit(scripted_job("answers"))
    assert [job.id for job in engine.queue().jobs] == [handle.id, following.id]
    assert not handle.cancel()
    release.touch()
    assert following.result(60.0).status == "finished"
    assert handle.result() == outcome
    states = []
    while not events.empty():
        states.append(events.get().state)
    assert [state for state in states if state] == ["running", "ended"]
    assert states[-1] == "ended"  # no step, no output after it


def test_a_job_waits_where_its_version_is_compiled(release: Path) -> None:
    executor = scripted_executor(lanes=2)
    try:
        executor.submit(compilation("answers_early"), key="a").result(60.0)
        other = executor.submit(scripted_job("answers"), key="b")
        assert other.result(60.0).status == "finished"  # in the other lane, which is free now
        same = executor.submit(scripted_job("answers"), key="a")
        assert same in executor.queue().jobs
        release.touch()
        assert same.result(60.0).status == "finished"
    finally:
        executor.close()


def test_a_later_crash_changes_no_answer(engine: LocalExecutor, release: Path) -> None:
    outcome = engine.submit(compilation("answers_early_then_dies")).result(60.0)
    release.touch()
    assert outcome.status == "finished"
    assert next_job_finishes(engine)


def test_a_compilation_that_nobody_requested_breaks_the_protocol(engine: LocalExecutor) -> None:
    job = RunJob(op=OpRef(name="answers_early"), version=VERSION)
    outcome = run(engine, job)
    assert (outcome.status, outcome.answer) == ("protocol", None)
    assert "a compilation that nobody requested" in outcome.detail


def test_closing_ends_what_is_still_compiled(engine: LocalExecutor, release: Path) -> None:
    engine.submit(compilation("answers_early")).result(60.0)
    processes = engine.processes
    engine.close()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in processes))
