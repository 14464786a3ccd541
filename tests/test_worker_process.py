# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""The worker's own side: its loop answers whatever a handler does, and it dies when it should."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from execution_kit import (  # noqa: F401 (process_tag, limits_clock: fixtures)
    PAST_SILENCE_S,
    WORKERS,
    LimitsClock,
    is_running,
    limits_clock,
    process_tag,
    run,
    scripted_executor,
    scripted_job,
    wait_until,
)

from triton_magics.execution import LocalExecutor, Outcome
from triton_magics.execution.job_answers import OpDescription, WorkerFault
from triton_magics.execution.local.worker_process import Worker
from triton_magics.execution.protocol import Progress
from triton_magics.execution.scratch import STACK
from triton_magics.harness.process.reporter import Reporter
from triton_magics.model import Case, Environment


@pytest.fixture
def engine() -> Iterator[LocalExecutor]:
    engine = scripted_executor("real_loop.py")
    yield engine
    engine.close()


def description(outcome: Outcome) -> OpDescription:
    assert outcome.status == "finished", outcome
    assert isinstance(outcome.answer, OpDescription), outcome
    return outcome.answer


def fault(outcome: Outcome) -> WorkerFault:
    assert outcome.status == "finished", outcome
    assert isinstance(outcome.answer, WorkerFault), outcome
    return outcome.answer


def test_a_job_is_handed_to_its_handler_and_answered(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("fine"))
    assert "--mode interpreter" in description(outcome).doc
    assert outcome.output == "on stdout\n"
    assert outcome.environment is not None
    assert outcome.environment.device == "a interpreter"


def test_one_worker_does_job_after_job(engine: LocalExecutor) -> None:
    pids = [description(run(engine, scripted_job("fine"), key="a")).name for _ in range(3)]
    assert len(set(pids)) == 1
    assert int(pids[0]) != os.getpid()


def test_what_c_code_printed_comes_before_the_answer(engine: LocalExecutor) -> None:
    assert run(engine, scripted_job("prints_from_c"), key="a").output == "from C\n"


def test_reports_arrive(engine: LocalExecutor) -> None:
    steps: list[Progress] = []
    outcome = run(engine, scripted_job("reports"), on_progress=steps.append)
    assert len(outcome.planned) == 1
    assert [case.error_share for case in outcome.cases] == [0.5]
    assert [timing.mean_us for timing in outcome.timings] == [1.0]
    assert outcome.environment is not None
    assert outcome.environment.device == "a better one"
    assert (outcome.stage, steps[-1].patience_s) == ("timing", 77.0)
    assert len(steps) < 100  # of a thousand counts


def test_a_report_after_the_end_is_ignored(engine: LocalExecutor) -> None:
    run(engine, scripted_job("reports_after_its_end"), key="a")
    assert description(run(engine, scripted_job("reports_for_the_last_job"), key="a"))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("raises", "ZeroDivisionError: one by none"),
        ("raises_surrogates", "ValueError: caf\\udce9"),
        ("raises_the_unspeakable", "Unspeakable"),
        ("calls_sys_exit", "SystemExit: 0"),
        ("raises_keyboard_interrupt", "KeyboardInterrupt"),
        ("returns_nonsense", "takes 3 positional arguments"),
        ("returns_surrogates", "surrogates not allowed"),
    ],
)
def test_a_failing_handler_replies_a_fault_and_retires(
    engine: LocalExecutor, action: str, message: str
) -> None:
    failed = fault(run(engine, scripted_job(action), key="a"))
    assert message in failed.message
    assert not failed.user
    assert "Traceback" in failed.traceback
    assert description(run(engine, scripted_job("fine"), key="a"))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("raises_the_users_fault", "softmax has no dtype 'int3'"),
        ("raises_an_unknown_name", "unknown op 'sofmax'"),
    ],
)
def test_a_repairable_error_is_one_line(engine: LocalExecutor, action: str, message: str) -> None:
    failed = fault(run(engine, scripted_job(action)))
    assert (failed.user, failed.message) == (True, message)


@pytest.mark.parametrize(
    "action",
    ["is_interrupted", "closes_the_usual_descriptors", "closes_stdout", "ends_with_stragglers"],
)
def test_what_a_worker_survives(engine: LocalExecutor, action: str) -> None:
    assert description(run(engine, scripted_job(action), key="a"))


@pytest.mark.parametrize("action", ["closes_every_descriptor", "closes_every_descriptor_and_waits"])
def test_a_worker_whose_connection_is_closed_under_it_ends(
    engine: LocalExecutor, action: str
) -> None:
    outcome = run(engine, scripted_job(action), key="a")
    assert outcome.status == "protocol"
    assert outcome.detail == "its process closed its connection"


def test_an_exit_in_a_handler_is_no_answer(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("exits"), key="a")
    assert (outcome.status, outcome.exit) == ("crashed", "exit code 0")


def test_a_segfault_says_where(engine: LocalExecutor) -> None:
    outcome = run(engine, scripted_job("segfaults"), key="a")
    assert (outcome.status, outcome.exit) == ("crashed", "SIGSEGV")
    assert outcome.detail == "its process died (SIGSEGV) while reading address 0"
    assert "Segmentation fault" in outcome.output
    assert "in segfaults" in outcome.output


def test_a_kernel_that_holds_the_interpreter_times_out(
    engine: LocalExecutor, limits_clock: LimitsClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton_magics.execution.local.worker_pool.STACK_DUMP_S", 60.0)
    listen = limits_clock.after("in C, for ever", PAST_SILENCE_S)
    outcome = run(engine, scripted_job("holds_the_interpreter"), key="a", on_progress=listen)
    assert (outcome.status, outcome.stage) == ("timeout", "in C, for ever")
    assert 'real_loop.py", line ' in outcome.stack
    assert "in holds_the_interpreter" in outcome.stack
    # No other thread looks at one that goes on; its report may still be returning.
    of_job = outcome.stack.partition("Current thread")[2].partition("\n\n")[0]
    assert "in holds_the_interpreter" in of_job
    assert outcome.output == ""


@pytest.mark.parametrize("trap", ["fifo", "fifo to be written", "link", "nothing"])
def test_where_a_job_was_is_read_from_no_trap(tmp_path: Path, trap: str) -> None:
    (tmp_path / "secret").write_text("Stack (most recent call first):")
    writer = None
    if trap.startswith("fifo"):
        os.mkfifo(tmp_path / STACK)
    if trap == "fifo to be written":
        writer = os.open(tmp_path / STACK, os.O_RDWR)
    elif trap == "link":
        (tmp_path / STACK).symlink_to(tmp_path / "secret")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stack = Worker(1, "interpreter", ours, -1, scratch=tmp_path).stack
    if writer is not None:
        os.close(writer)
    assert not stack


@pytest.mark.parametrize(("own", "stack"), [("", ""), ("it\n", "it\nanother\n")])
def test_compilers_do_not_add_to_a_silent_workers_stack(
    tmp_path: Path, own: str, stack: str
) -> None:
    (tmp_path / STACK).write_text(own)
    (tmp_path / f"{STACK}.17").write_text("another\n")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert Worker(1, "gpu", ours, -1, scratch=tmp_path).stack == stack


def test_the_nonce_is_in_no_module_and_no_attribute(engine: LocalExecutor) -> None:
    assert description(run(engine, scripted_job("has_no_nonce_in_reach"))).doc == "[]"


# ------------------------------------------------------------------------------ its end


def by_hand() -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Yield a worker without a supervisor, ready for jobs."""
    ours, theirs = socket.socketpair()
    argv = [sys.executable, str(WORKERS / "real_loop.py"), "--mode", "compiler"]
    environment = os.environ | {"PYTHONPATH": str(WORKERS.parents[1])}
    process = subprocess.Popen(
        [*argv, "--fd", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        start_new_session=True,
        env=environment,
    )
    theirs.close()
    ours.settimeout(60)
    assert b"ready" in ours.recv(2**16)
    return process, ours


def test_a_worker_ends_when_the_engine_hangs_up() -> None:
    process, engine_end = by_hand()
    engine_end.close()
    assert process.wait(60) in (0, -signal.SIGKILL, 75)


def test_a_worker_dies_with_its_supervisor(engine: LocalExecutor) -> None:
    run(engine, scripted_job("fine"), key="a")
    supervisor_pid, *workers = engine.queue().pool.pids
    assert workers
    os.kill(supervisor_pid, signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, workers)))


def test_a_worker_is_the_first_to_go_when_memory_is_short(engine: LocalExecutor) -> None:
    run(engine, scripted_job("fine"), key="a")
    _, worker, *_ = engine.queue().pool.pids
    with open(f"/proc/{worker}/oom_score_adj") as score:
        assert int(score.read()) == 500


# ---------------------------------------------------------------------------- Reporter


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def sent() -> list[Progress]:
    return []


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def report(sent: list[Progress], clock: Clock) -> Reporter:
    return Reporter(sent.append, "the nonce", clock=clock)


def test_a_counting_step_is_sent_twenty_times_a_second(
    report: Reporter, sent: list[Progress], clock: Clock
) -> None:
    for done in range(1000):
        report.stage("validating", done, 1000)
        clock.now += 0.001
    assert 19 <= len(sent) <= 21
    assert {(p.nonce, p.stage, p.total) for p in sent} == {("the nonce", "validating", 1000)}


def test_a_new_step_or_another_patience_is_always_sent(
    report: Reporter, sent: list[Progress]
) -> None:
    report.stage("validating 7x13")
    report.stage("validating 1x1")
    report.stage("validating 1x1", patience_s=120.0)
    assert [(p.stage, p.patience_s) for p in sent] == [
        ("validating 7x13", 0.0),
        ("validating 1x1", 0.0),
        ("validating 1x1", 120.0),
    ]


def test_work_of_the_judge_within_a_step_has_its_own_time(
    report: Reporter, sent: list[Progress]
) -> None:
    case = Case(shape=(7, 13), dtype="float32", seed=1)
    report.stage("validating 7x13", 3, 9, 120.0, subject=case)
    with report.own_work("computing the allowed errors of 7x13", 600.0):
        pass
    assert [(p.stage, p.patience_s, p.case) for p in sent] == [
        ("validating 7x13", 120.0, case),
        ("computing the allowed errors of 7x13", 600.0, None),
        ("validating 7x13", 120.0, case),
    ]
    assert {(p.done, p.total) for p in sent} == {(3, 9)}


def test_data_is_always_sent_with_the_step_it_belongs_to(
    report: Reporter, sent: list[Progress]
) -> None:
    here = Environment(device_kind="gpu", device="H200", python="3", torch="2", triton="3")
    report.stage("warming", 1, 3)
    report.stage("warming", 2, 3)
    report.environment(here)
    report.plan([])
    assert [(p.done, p.environment, p.planned) for p in sent] == [
        (1, None, None),
        (2, here, None),
        (2, None, ()),
    ]


def test_a_closed_reporter_is_silent(report: Reporter, sent: list[Progress]) -> None:
    report.close()
    report.stage("too late")
    assert sent == []
