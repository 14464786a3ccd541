# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Outcome of a job for each fault of its process; after each fault the next job works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine, limits_clock, release: fixtures)
    PAST_JOB_S,
    PAST_SILENCE_S,
    LimitsClock,
    cancel_running,
    engine,
    limits_clock,
    process_state,
    process_tag,
    read_facts,
    release,
    run,
    scripted_executor,
    scripted_job,
    tagged_processes,
    wait_until,
)

from triton_magics.errors import WorkerError
from triton_magics.execution import LocalExecutor, Outcome
from triton_magics.execution.local.cpu_wait import CpuWait, waited_for_others
from triton_magics.execution.protocol import Progress


def next_job_finishes(engine: LocalExecutor) -> bool:
    """Return True if the next job, of other code, finishes."""
    return run(engine, scripted_job("answers"), key="next").status == "finished"


def test_a_job_is_answered(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("answers"))
    assert read_facts(outcome)["pid"] != os.getpid()
    assert (outcome.exit, outcome.output, outcome.detail) == (None, "", "")
    assert outcome.environment is not None
    assert outcome.environment.device == "a script"
    assert outcome.wall_s > 0


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
    monkeypatch.setattr("triton_magics.execution.local.supervisor_client.RESUME_S", float("inf"))
    monkeypatch.setattr("triton_magics.execution.local.supervisor_client.ANSWER_S", float("inf"))
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


@pytest.mark.parametrize(
    ("action", "how"),
    [
        ("exits_with_zero", "exit code 0"),
        ("exits_with_three", "exit code 3"),
        ("segfaults", "SIGSEGV"),
        ("is_killed", "SIGKILL"),
        ("leaves_a_child_and_dies", "exit code 0"),
    ],
)
def test_a_process_that_ends_without_an_answer_has_crashed(
    engine: LocalExecutor, action: str, how: str
) -> None:
    outcome = run(engine, scripted_job(action), key="a")
    assert (outcome.status, outcome.exit, outcome.answer) == ("crashed", how, None)
    assert how in outcome.detail
    assert next_job_finishes(engine)


def test_a_crash_shows_what_was_printed(engine: LocalExecutor) -> None:
    assert run(engine, scripted_job("exits_with_three")).output == "three, alas\n"


def test_an_answer_stands_even_if_its_process_dies_right_after(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("answers_then_dies"), key="a")
    assert outcome.status == "finished"
    assert next_job_finishes(engine)


@pytest.mark.parametrize(
    "action",
    [
        "sends_garbage",
        "scribbles",
        "sends_a_bare_number",
        "sends_wrong_nonce",
        "sends_ready_again",
        "sends_oversize_frame",
        "closes_its_connection",
        "closes_everything",
        "reports_cases_for_ever",
    ],
)
def test_a_process_that_breaks_the_protocol_is_killed(engine: LocalExecutor, action: str) -> None:
    outcome = run(engine, scripted_job(action), key="a")
    assert (outcome.status, outcome.answer, outcome.exit) == ("protocol", None, None)
    assert outcome.detail
    assert next_job_finishes(engine)


def test_a_crash_that_is_reported_late_is_no_closed_connection(
    engine: LocalExecutor, release: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.job_run.EOF_GRACE_S", 0.0)
    supervisor = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]
    workers = engine.queue().pool._supervisor.workers

    def listen(_: Progress) -> None:
        os.kill(supervisor, signal.SIGSTOP)
        wait_until(lambda: process_state(supervisor) == b"T")
        release.touch()
        wait_until(lambda: any(worker.eof_at for worker in [*workers.values()]))
        os.kill(supervisor, signal.SIGCONT)

    outcome = run(engine, scripted_job("exits_after_a_file"), key="a", on_progress=listen)
    assert (outcome.status, outcome.exit) == ("crashed", "exit code 0")


def test_reports_before_garbage_are_returned(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("reports_then_sends_garbage"))
    assert outcome.status == "protocol"
    assert [case.error_share for case in outcome.cases] == [0.25]


def test_output_is_capped_and_the_answer_stands(engine: LocalExecutor) -> None:
    pieces: list[str] = []
    outcome = run(engine, scripted_job("floods"), on_output=pieces.append)
    assert outcome.status == "finished"
    assert outcome.output.startswith("the beginning\nxxx")
    assert outcome.output.endswith("xxxthe end\n")
    assert "bytes dropped" in outcome.output
    assert len(outcome.output) < 70_000
    assert "".join(pieces) == outcome.output


def test_output_that_is_no_utf8_is_shown_all_the_same(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("prints_bytes"))
    assert outcome.status == "finished"
    assert outcome.output == "café \\xff\\xfe\non stderr\n"


def test_output_is_sent_while_the_job_runs(engine: LocalExecutor, release: Path) -> None:
    pieces: list[str] = []

    def listen(piece: str) -> None:
        pieces.append(piece)
        release.touch()  # the job goes on with its next step

    outcome = run(engine, scripted_job("prints_in_steps"), on_output=listen)
    assert pieces == ["step 0\n", "step 1\n", "step 2\n"]
    assert outcome.output == "".join(pieces)


def test_steps_are_reported_in_order(engine: LocalExecutor) -> None:
    stages: list[str] = []
    run(engine, scripted_job("takes_a_while"), on_progress=lambda p: stages.append(p.stage))
    assert stages == ["starting a worker", "taking a while"]


class Interrupter:
    """Sends this process a SIGINT from another thread once a stage is reported."""

    def __init__(self, stage: str) -> None:
        self.sent_at = float("inf")
        self._stage = stage
        self._reached = threading.Event()
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def note(self, progress: Progress) -> None:
        if progress.stage == self._stage:
            self._reached.set()

    def _send(self) -> None:
        if self._reached.wait(60):
            os.kill(os.getpid(), signal.SIGINT)

    def join(self) -> None:
        self._thread.join()


def test_an_interrupt_ends_the_job_and_returns_its_reports(
    engine: LocalExecutor, process_tag: str
) -> None:
    interrupter = Interrupter("timing 2x3 float32")
    outcome = run(engine, scripted_job("reports_then_hangs"), on_progress=interrupter.note)
    interrupter.join()
    assert (outcome.status, len(outcome.cases), len(outcome.timings)) == ("interrupted", 1, 1)
    assert outcome.detail == "interrupted while timing 2x3 float32"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert next_job_finishes(engine)


def test_an_interrupt_by_the_users_own_handler_ends_the_job_too(engine: LocalExecutor) -> None:
    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, raise_interrupt)
    try:
        interrupter = Interrupter("timing 2x3 float32")
        outcome = run(engine, scripted_job("reports_then_hangs"), on_progress=interrupter.note)
        interrupter.join()
    finally:
        assert signal.signal(signal.SIGINT, before) is raise_interrupt
    assert (outcome.status, len(outcome.cases)) == ("interrupted", 1)
    assert next_job_finishes(engine)


def test_an_interrupt_does_not_stop_a_warm_up() -> None:
    engine = scripted_executor("never_ready.py")
    interrupter = Interrupter("starting a worker")
    outcome = run(engine, scripted_job("answers"), on_progress=interrupter.note)
    interrupter.join()
    assert outcome.status == "interrupted"
    engine.close()


def test_a_job_is_cancelled_from_another_thread(engine: LocalExecutor) -> None:
    reached, labels = threading.Event(), []
    canceller = threading.Thread(
        target=lambda: (reached.wait(60), labels.append(cancel_running(engine)))
    )
    canceller.start()

    def listen(progress: Progress) -> None:
        if progress.stage == "timing 2x3 float32":
            reached.set()

    outcome = run(engine, scripted_job("reports_then_hangs"), on_progress=listen)
    canceller.join()
    assert labels == ["describe reports_then_hangs"]
    assert (outcome.status, len(outcome.cases), len(outcome.timings)) == ("interrupted", 1, 1)
    assert next_job_finishes(engine)


def test_a_job_of_another_thread_is_cancelled(engine: LocalExecutor) -> None:
    ended: list[Outcome] = []
    hanging = threading.Event()
    job = threading.Thread(
        target=lambda: ended.append(
            run(engine, scripted_job("hangs"), on_progress=lambda _: hanging.set())
        )
    )
    job.start()
    assert hanging.wait(60)
    assert cancel_running(engine) == "describe hangs"
    job.join()
    assert [outcome.status for outcome in ended] == ["interrupted"]


def test_a_listener_may_cancel_the_job_that_it_listens_to(engine: LocalExecutor) -> None:
    def listen(progress: Progress) -> None:
        if progress.stage == "hanging":
            cancel_running(engine)

    outcome = run(engine, scripted_job("hangs"), on_progress=listen)
    assert (outcome.status, outcome.detail) == ("interrupted", "interrupted while hanging")


def test_to_cancel_where_nothing_runs_hurts_no_later_job(engine: LocalExecutor) -> None:
    assert cancel_running(engine) is None
    assert next_job_finishes(engine)
    assert cancel_running(engine) is None
    assert next_job_finishes(engine)


def test_cancelled_before_its_worker_is_ready_a_job_never_begins() -> None:
    engine = scripted_executor("never_ready.py")
    outcome = run(engine, scripted_job("answers"), on_progress=lambda _: cancel_running(engine))
    assert (outcome.status, outcome.detail) == ("interrupted", "interrupted before it began")
    engine.close()


def test_an_error_in_a_listener_is_raised_and_the_job_killed(
    engine: LocalExecutor, process_tag: str
) -> None:
    def fail(_: Progress) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(engine, scripted_job("hangs"), on_progress=fail)
    # The supervisor and a standby.
    wait_until(lambda: len(tagged_processes(process_tag)) <= 2)
    assert next_job_finishes(engine)


def test_a_death_during_warm_up_is_no_verdict() -> None:
    engine = scripted_executor("dies_while_warming.py")
    with pytest.raises(WorkerError, match=r"exit code 1.*\n.*libcuda\.so\.1"):
        run(engine, scripted_job("answers"))
    engine.close()


def test_a_worker_that_speaks_before_it_is_ready_is_refused() -> None:
    engine = scripted_executor("speaks_too_soon.py")
    with pytest.raises(WorkerError, match="first frame is reply"):
        run(engine, scripted_job("answers"))
    engine.close()


def test_a_worker_that_is_never_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triton_magics.execution.local.device_queue.WARM_S", 0.2)
    engine = scripted_executor("never_ready.py")
    with pytest.raises(WorkerError, match=r"not ready in 0\.2 s"):
        run(engine, scripted_job("answers"))
    engine.close()


def test_a_program_that_is_not_there_is_no_verdict_on_a_kernel() -> None:
    engine = LocalExecutor(scripted_executor()._settings, command=lambda _: ["/nowhere/python"])
    with pytest.raises(WorkerError, match="No such file"):
        run(engine, scripted_job("answers"))
    engine.close()
