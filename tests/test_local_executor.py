# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Outcome of a job for each fault of its process; after each fault the next job works."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine, release: fixtures)
    cancel_running,
    engine,
    next_job_finishes,
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
from triton_magics.execution.protocol import Progress


def test_a_job_is_answered(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("answers"))
    assert read_facts(outcome)["pid"] != os.getpid()
    assert (outcome.exit, outcome.output, outcome.detail) == (None, "", "")
    assert outcome.environment is not None
    assert outcome.environment.device == "a script"
    assert outcome.wall_s > 0


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
