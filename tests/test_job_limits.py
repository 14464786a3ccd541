# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Time limits of a job: silence, the whole job, patience, and waiting for others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine, limits_clock, release: fixtures)
    PAST_JOB_S,
    PAST_SILENCE_S,
    LimitsClock,
    engine,
    limits_clock,
    next_job_finishes,
    process_state,
    process_tag,
    read_facts,
    release,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution import LocalExecutor
from triton_magics.execution.local.cpu_wait import CpuWait, waited_for_others
from triton_magics.execution.protocol import Progress


@pytest.mark.parametrize(
    ("action", "stage"),
    [("hangs", "hanging"), ("hangs_deaf", "hanging, deaf to signals"), ("stops", "stopped")],
)
def test_a_job_that_never_ends_times_out(
    engine: LocalExecutor, limits_clock: LimitsClock, action: str, stage: str
) -> None:
    listen = limits_clock.after(stage, PAST_SILENCE_S)
    outcome = run(engine, scripted_job(action), key="a", on_progress=listen)
    assert (outcome.status, outcome.stage) == ("timeout", stage)
    assert outcome.detail == f"no answer in 60 s while {stage}"
    assert outcome.answer is None
    assert next_job_finishes(engine)


def test_a_worker_that_takes_long_to_die_is_not_waited_for(
    engine: LocalExecutor, limits_clock: LimitsClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.device_queue.KILL_S", 0.0)
    monkeypatch.setattr("triton_magics.execution.local.supervisor_process.RESUME_S", float("inf"))
    monkeypatch.setattr("triton_magics.execution.local.supervisor_process.ANSWER_S", float("inf"))
    supervisor = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]

    def stop_supervisor(_: Progress) -> None:
        os.kill(supervisor, signal.SIGSTOP)  # it kills nothing: the worker outlives any limit
        wait_until(lambda: process_state(supervisor) == b"T")
        limits_clock.skip(PAST_SILENCE_S)

    outcome = run(engine, scripted_job("hangs"), key="a", on_progress=stop_supervisor)
    assert outcome.status == "timeout"
    assert "its process is not gone yet" in outcome.detail
    os.kill(supervisor, signal.SIGCONT)
    assert next_job_finishes(engine)


def test_a_job_that_says_nothing_at_all_times_out() -> None:
    engine = scripted_executor(silence_s=0.2)
    outcome = run(engine, scripted_job("hangs_silently"))
    assert (outcome.status, outcome.stage, outcome.detail) == ("timeout", "", "no answer in 0.2 s")
    engine.close()


def test_printing_is_not_progress(engine: LocalExecutor, limits_clock: LimitsClock) -> None:
    stages: list[str] = []

    def listen(_: str) -> None:
        if "printing" in stages:
            limits_clock.skip(PAST_SILENCE_S)

    job = scripted_job("floods_for_ever")
    outcome = run(engine, job, on_progress=lambda p: stages.append(p.stage), on_output=listen)
    assert outcome.detail == "no answer in 60 s while printing"
    assert outcome.output.startswith("still at it\n")
    assert next_job_finishes(engine)


def test_endless_progress_is_stopped_by_the_jobs_limit(
    engine: LocalExecutor, limits_clock: LimitsClock
) -> None:
    listen = limits_clock.after("going round in circles", PAST_JOB_S)
    outcome = run(engine, scripted_job("reports_for_ever"), on_progress=listen)
    assert outcome.status == "timeout"
    assert outcome.detail == "not done in 6000 s while going round in circles"


def test_a_step_may_ask_for_patience(engine: LocalExecutor, limits_clock: LimitsClock) -> None:
    listen = limits_clock.after("compiling", PAST_SILENCE_S)
    outcome = run(engine, scripted_job("asks_for_patience"), on_progress=listen)
    assert outcome.status == "finished"


def test_patience_ends_with_the_limit_of_the_whole_job(
    engine: LocalExecutor, limits_clock: LimitsClock
) -> None:
    listen = limits_clock.after("compiling", PAST_JOB_S)
    outcome = run(engine, scripted_job("asks_for_too_much_patience"), on_progress=listen)
    assert (outcome.status, outcome.detail) == ("timeout", "not done in 6000 s while compiling")


def test_time_that_a_job_waits_for_others_is_not_its_own(
    engine: LocalExecutor, limits_clock: LimitsClock, release: Path
) -> None:
    def listen(progress: Progress) -> None:
        if progress.waits:  # four times, each shorter than the limit
            limits_clock.skip(400.0)
            release.touch()

    outcome = run(engine, scripted_job("waits_for_others"), on_progress=listen, timeout_s=600.0)
    assert (outcome.status, outcome.detail) == ("finished", "")


@pytest.mark.parametrize(
    ("action", "ending"),
    [
        ("waits_for_others_and_works_too_long", "not done in 60 s while working"),
        ("waits_and_says_no_more", "no answer in 60 s while waiting 0 s for the GPU"),
    ],
)
def test_a_job_that_waited_for_others_has_limits(
    engine: LocalExecutor, limits_clock: LimitsClock, action: str, ending: str
) -> None:
    last_stage = ending.partition("while ")[2]
    listen = limits_clock.after(last_stage, PAST_SILENCE_S)
    outcome = run(engine, scripted_job(action), key="a", on_progress=listen, timeout_s=60.0)
    assert outcome.detail == ending


@pytest.fixture
def busy_cpu() -> Iterator[int]:
    """Yield the pid of one of five programs that share a CPU."""
    cpu = {min(os.sched_getaffinity(0))}
    spin = [sys.executable, "-S", "-c", "while True: pass"]
    spinners = [subprocess.Popen(spin) for _ in range(5)]
    for each in spinners:
        os.sched_setaffinity(each.pid, cpu)
    yield spinners[0].pid
    for each in spinners:
        each.kill()
        each.wait()


def test_a_wait_for_a_cpu_is_read(busy_cpu: int) -> None:
    cpu_wait = CpuWait(busy_cpu)
    wait_until(lambda: cpu_wait.take(at_once=True) > 0.0)


class BusyCpu:
    """Stands for `CpuWait`: a worker that waited for a CPU."""

    def __init__(self) -> None:
        self.waited_s = 0.0

    def take(self, *, at_once: bool = False) -> float:
        waited_s, self.waited_s = self.waited_s, 0.0
        return waited_s


@pytest.mark.parametrize(("waited_s", "status"), [(300.0, "finished"), (200.0, "timeout")])
def test_time_that_a_job_waits_for_a_cpu_is_not_its_own(
    engine: LocalExecutor,
    limits_clock: LimitsClock,
    release: Path,
    monkeypatch: pytest.MonkeyPatch,
    waited_s: float,
    status: str,
) -> None:
    cpu = BusyCpu()
    monkeypatch.setattr("triton_magics.execution.local.job_run.CpuWait", lambda *_: cpu)

    def listen(progress: Progress) -> None:
        if progress.stage == "waiting for a file":
            cpu.waited_s = waited_s
            limits_clock.skip(300.0)
            wait_until(lambda: not cpu.waited_s)  # it was read
            if status == "finished":
                release.touch()

    outcome = run(engine, scripted_job("waits_for_a_file"), on_progress=listen)
    assert outcome.status == status
    assert ("no answer in 60 s" in outcome.detail) is (status == "timeout")


@pytest.mark.parametrize(
    ("on_cpu_s", "waiting_s", "expected_s"),
    [
        (0.25, 0.75, 0.75),  # one thread that never sleeps
        (0.25, 0.25, 0.25),  # and sleeps for the rest
        (0.0, 0.0, 0.0),  # it hangs
        (2.0, 6.0, 0.0),  # eight threads that have both CPUs
        (0.5, 7.5, 0.5),  # and share them with others
    ],
)
def test_threads_that_keep_each_other_from_a_cpu_wait_for_nobody(
    on_cpu_s: float, waiting_s: float, expected_s: float
) -> None:
    assert waited_for_others(1.0, on_cpu_s, waiting_s) == expected_s


def test_timeout_s_replaces_both_limits() -> None:
    engine = scripted_executor(silence_s=0.1, job_s=600.0)
    longer = run(engine, scripted_job("hangs_silently"), timeout_s=0.4)
    assert longer.wall_s >= 0.4
    assert longer.detail == "not done in 0.4 s"
    engine.close()


def test_a_timeout_keeps_what_was_reported(
    engine: LocalExecutor, limits_clock: LimitsClock
) -> None:
    listen = limits_clock.after("timing 2x3 float32", PAST_SILENCE_S)
    outcome = run(engine, scripted_job("reports_then_hangs"), on_progress=listen)
    assert outcome.status == "timeout"
    assert [case.status for case in outcome.planned] == ["not_run"] * 3
    assert [case.error_share for case in outcome.cases] == [0.25]
    assert [timing.mean_us for timing in outcome.timings] == [2.0]
    assert outcome.environment is not None
    assert outcome.environment.device == "a better script"
    assert outcome.stage == "timing 2x3 float32"
