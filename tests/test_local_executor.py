# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Outcome of a job for each fault of its process; after each fault the next job works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from execution_kit import (  # noqa: F401 (process_tag, engine: fixtures)
    cancel_running,
    engine,
    process_tag,
    read_facts,
    run,
    scripted_executor,
    scripted_job,
    tagged_processes,
)

from triton_magics.errors import WorkerError
from triton_magics.execution import LocalExecutor, Outcome
from triton_magics.execution.local.cpu_wait import waited_for_others
from triton_magics.execution.protocol import Progress


def impatient() -> LocalExecutor:
    return scripted_executor(silence_s=0.2, job_s=1.0)


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


@pytest.mark.parametrize("action", ["hangs", "hangs_deaf", "stops"])
def test_a_job_that_never_ends_times_out(action: str) -> None:
    engine = impatient()
    outcome = run(engine, scripted_job(action), key="a")
    assert outcome.status == "timeout"
    assert outcome.detail.startswith("no answer in 0.2 s ")
    assert outcome.detail.endswith(outcome.stage)
    assert outcome.answer is None
    assert next_job_finishes(engine)
    engine.close()


def test_a_worker_that_takes_long_to_die_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.device_queue.KILL_S", 0.0)
    engine = impatient()
    supervisor = read_facts(run(engine, scripted_job("answers"), key="a"))["parent"]
    # A stopped supervisor kills nothing: the worker outlives any limit.
    outcome = run(
        engine,
        scripted_job("hangs"),
        key="a",
        on_progress=lambda _: os.kill(supervisor, signal.SIGSTOP),
    )
    assert outcome.status == "timeout"
    assert "its process is not gone yet" in outcome.detail
    os.kill(supervisor, signal.SIGCONT)
    assert next_job_finishes(engine)
    engine.close()


def test_a_job_that_says_nothing_at_all_times_out() -> None:
    engine = impatient()
    outcome = run(engine, scripted_job("hangs_silently"))
    assert (outcome.status, outcome.stage, outcome.detail) == ("timeout", "", "no answer in 0.2 s")
    engine.close()


def test_printing_is_not_progress() -> None:
    engine = impatient()
    outcome = run(engine, scripted_job("floods_for_ever"))
    assert outcome.status == "timeout"
    assert outcome.output.startswith("still at it\n")
    assert next_job_finishes(engine)
    engine.close()


def test_endless_progress_is_stopped_by_the_jobs_limit() -> None:
    engine = scripted_executor(silence_s=5.0, job_s=0.3)
    outcome = run(engine, scripted_job("reports_for_ever"))
    assert outcome.status == "timeout"
    assert outcome.detail == "not done in 0.3 s while going round in circles"
    engine.close()


def test_a_step_may_ask_for_patience() -> None:
    engine = scripted_executor(silence_s=0.2)
    assert run(engine, scripted_job("asks_for_patience")).status == "finished"
    engine.close()


def test_patience_ends_with_the_limit_of_the_whole_job() -> None:
    engine = impatient()
    outcome = run(engine, scripted_job("asks_for_too_much_patience"))
    assert (outcome.status, outcome.detail) == ("timeout", "not done in 1 s while compiling")
    engine.close()


@pytest.mark.parametrize(
    ("action", "ending"),
    [
        ("waits_for_others", ""),
        ("waits_for_others_and_works_too_long", "not done in 0.8 s while working"),
        ("waits_and_says_no_more", "no answer in 0.8 s while waiting 0 s for the GPU"),
    ],
)
def test_what_a_job_waits_for_others_is_not_its_own_time(
    engine: LocalExecutor, action: str, ending: str
) -> None:
    assert run(engine, scripted_job(action), key="a", timeout_s=0.8).detail == ending


@pytest.fixture
def busy_cpu() -> Iterator[None]:
    """Keep the first CPU busy with five programs of others."""
    cpu = {min(os.sched_getaffinity(0))}
    spin = [sys.executable, "-S", "-c", "while True: pass"]
    spinners = [subprocess.Popen(spin) for _ in range(5)]
    for each in spinners:
        os.sched_setaffinity(each.pid, cpu)
    yield
    for each in spinners:
        each.kill()
        each.wait()


@pytest.mark.usefixtures("busy_cpu")
def test_what_a_job_waits_for_a_cpu_is_not_its_own_time() -> None:
    with closing(scripted_executor(silence_s=0.5, job_s=0.6)) as engine:
        outcome = run(engine, scripted_job("works_on_a_shared_cpu"), key="a")
        assert (outcome.status, outcome.detail) == ("finished", "")
        endless = run(engine, scripted_job("works_for_ever_on_a_shared_cpu"), key="a")
        assert endless.detail == "no answer in 0.5 s while working"


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
    engine = impatient()
    shorter = run(engine, scripted_job("asks_for_too_much_patience"), timeout_s=0.1)
    assert shorter.detail == "not done in 0.1 s while compiling"
    longer = run(engine, scripted_job("hangs"), timeout_s=0.4)
    assert longer.wall_s >= 0.4
    engine.close()


def test_a_timeout_keeps_what_was_reported() -> None:
    engine = impatient()
    outcome = run(engine, scripted_job("reports_then_hangs"))
    assert outcome.status == "timeout"
    assert [case.status for case in outcome.planned] == ["not_run"] * 3
    assert [case.error_share for case in outcome.cases] == [0.25]
    assert [timing.mean_us for timing in outcome.timings] == [2.0]
    assert outcome.environment is not None
    assert outcome.environment.device == "a better script"
    assert outcome.stage == "timing 2x3 float32"
    engine.close()


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


def test_output_is_sent_while_the_job_runs(engine: LocalExecutor) -> None:
    pieces: list[str] = []
    outcome = run(engine, scripted_job("prints_in_steps"), on_output=pieces.append)
    assert "".join(pieces) == outcome.output == "step 0\nstep 1\nstep 2\n"
    assert len(pieces) > 1


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
        if self._reached.wait(10):
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
        target=lambda: (reached.wait(10), labels.append(cancel_running(engine)))
    )
    canceller.start()

    def listen(progress: Progress) -> None:
        if progress.stage == "timing 2x3 float32":
            reached.set()

    outcome = run(engine, scripted_job("reports_then_hangs"), on_progress=listen, timeout_s=20)
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
    assert hanging.wait(10)
    assert cancel_running(engine) == "describe hangs"
    job.join()
    assert [outcome.status for outcome in ended] == ["interrupted"]


def test_a_listener_may_cancel_the_job_that_it_listens_to(engine: LocalExecutor) -> None:
    def listen(progress: Progress) -> None:
        if progress.stage == "hanging":
            cancel_running(engine)

    outcome = run(engine, scripted_job("hangs"), on_progress=listen, timeout_s=20)
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

    run(engine, scripted_job("answers"))
    before = set(tagged_processes(process_tag))
    with pytest.raises(ZeroDivisionError):
        run(engine, scripted_job("hangs"), on_progress=fail)
    # The supervisor and a standby, which may not have started before.
    assert len(tagged_processes(process_tag)) <= max(len(before), 2)
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
