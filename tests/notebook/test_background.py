"""Calls that run beside the notebook: `--bg`."""

from __future__ import annotations

import ast
import contextlib
import os
import re
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.fake_executor import FakeExecutor
from tests.notebook.kernels import REPOSITORY, Kernel, started
from tests.notebook.shells import Shell
from triton_magics.errors import KernelFailure, UnknownVersion
from triton_magics.execution import Outcome
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.execution.protocol import Progress
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, Status, Validation
from triton_magics.notebook.background import Job

WAIT_S = 30.0


class Gate:
    """Block the executor's next job until the gate is opened or the job is cancelled."""

    def __init__(self, engine: FakeExecutor) -> None:
        self._engine = engine
        self.reached, self.open = threading.Event(), threading.Event()
        self.cancelled = False
        engine.answer = self._answer
        engine.on_cancel = self._cancel

    def _cancel(self) -> None:
        self.cancelled = True
        self.open.set()

    def _answer(self, job: Any) -> Outcome:
        self.reached.set()
        assert self.open.wait(WAIT_S)
        if self.cancelled:
            return Outcome(status="interrupted", detail="interrupted")
        return self._engine.run(job)


@pytest.fixture
def gate(shell: Shell, engine: FakeExecutor) -> Iterator[Gate]:
    shell.write("v1")
    gate = Gate(engine)
    yield gate
    gate.open.set()


@pytest.fixture
def in_notebook(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setattr(InteractiveShell, "kernel", object(), raising=False)
    return shell


def shown(shell: Shell) -> list[tuple[str, str, bool]]:
    """Return each output since the last cell began: kind, text, whether it replaced another."""
    return [
        (str(o["transient"].get("display_id", "")), o["data"]["text/plain"], o["update"])
        for o in shell._publisher.outputs
        if "update" in o
    ]


def test_the_cell_ends_at_once_and_the_handle_has_the_value(shell: Shell, gate: Gate) -> None:
    job = shell("job = %triton_validate softmax v1 --bg").value or shell("job").value
    assert isinstance(job, Job)
    assert gate.reached.wait(WAIT_S)
    assert job.status == "running"
    assert repr(job) == "<validate softmax v1: running>"
    with pytest.raises(TimeoutError):
        job.result(timeout=0)
    gate.open.set()
    value = job.result(WAIT_S)
    assert isinstance(value, Validation)
    assert value.passed
    assert job.status == "done"
    assert job.cancel() is False


def test_other_cells_run_meanwhile(shell: Shell, gate: Gate) -> None:
    job = shell("%triton_validate softmax v1 --bg").value
    assert gate.reached.wait(WAIT_S)
    assert shell("%triton_status softmax").value.state == "evaluation"
    assert job.status == "running"
    gate.open.set()
    job.result(WAIT_S)
    assert shell("%triton_status softmax").value.versions[0].validation is Status.PASSED


def test_the_output_changes_in_place(in_notebook: Shell, gate: Gate, engine: FakeExecutor) -> None:
    engine.steps = (Progress(nonce="", stage="257x1023 float16", done=12, total=46),)
    in_notebook("%triton_validate softmax v1 -o job --bg")
    job = in_notebook.shell.user_ns["job"]
    gate.open.set()
    job.result(WAIT_S)
    first, *others = shown(in_notebook)
    assert first[1:] == ("validate softmax v1 · queued", False)
    assert {output for output, _, _ in others} == {first[0]}
    assert all(update for _, _, update in others)
    assert others[-1][1].startswith("✓ RIGHT  softmax v1")


def test_a_picture_stands_below(in_notebook: Shell, engine: FakeExecutor) -> None:
    in_notebook.write("v1")
    in_notebook("%triton_validate softmax v1 -q")
    job = in_notebook("%triton_bench softmax --bg").value
    assert isinstance(job.result(WAIT_S), Benchmark)
    *_, table, figure = in_notebook._publisher.outputs
    assert table["update"]
    assert "image/png" in figure["data"]


def test_a_handle_can_be_shown_again_elsewhere(in_notebook: Shell, gate: Gate) -> None:
    in_notebook("job = %triton_validate softmax v1 --bg")
    assert gate.reached.wait(WAIT_S)
    cell = in_notebook("job")
    assert "validate softmax v1" in cell.shown()
    gate.open.set()
    cell.value.result(WAIT_S)
    output = {output for output, text, update in shown(in_notebook) if update and "RIGHT" in text}
    assert len(output) == 2


def test_a_terminal_shows_the_start_and_the_end(
    shell: Shell, gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = shell("%triton_validate softmax v1 --bg")
    assert re.fullmatch(r"Out\[\d+\]: <validate softmax v1: (queued|running)>\n", cell.stdout)
    gate.open.set()
    cell.value.result(WAIT_S)
    assert "✓ RIGHT  softmax v1" in capsys.readouterr().out


def test_quiet_shows_nothing(in_notebook: Shell, gate: Gate) -> None:
    in_notebook("job = %triton_validate softmax v1 --bg -q")
    gate.open.set()
    in_notebook.shell.user_ns["job"].result(WAIT_S)
    assert shown(in_notebook) == []


# ------------------------------------------------------------------------------------ several


def test_jobs_run_one_after_the_other(in_notebook: Shell, gate: Gate, engine: FakeExecutor) -> None:
    jobs = [in_notebook(f"%triton_validate softmax v1 --seed {n} --bg").value for n in (1, 2, 3)]
    assert gate.reached.wait(WAIT_S)
    assert [job.status for job in jobs] == ["running", "queued", "queued"]
    texts = [text for _, text, _ in shown(in_notebook)]
    assert "validate softmax v1 · queued, waits for 2 jobs" in texts
    gate.open.set()
    assert [job.result(WAIT_S).seed for job in jobs] == [1, 2, 3]
    seeds = [job.seed for job in engine.jobs if isinstance(job, ValidateJob)]
    assert list(dict.fromkeys(seeds)) == [1, 2, 3]


def test_a_queued_job_is_cancelled_without_a_word_to_the_engine(
    shell: Shell, gate: Gate, engine: FakeExecutor
) -> None:
    first, second = (shell(f"%triton_validate softmax v1 --seed {n} --bg").value for n in (1, 2))
    assert gate.reached.wait(WAIT_S)
    assert second.cancel() is True
    assert second.status == "cancelled"
    with pytest.raises(CancelledError, match="was cancelled before it began"):
        second.result(WAIT_S)
    assert engine.cancelled == 0
    gate.open.set()
    assert first.result(WAIT_S).passed
    assert 2 not in [job.seed for job in engine.jobs if isinstance(job, ValidateJob)]


def test_a_running_job_is_cancelled_and_the_next_one_runs(
    in_notebook: Shell, gate: Gate, engine: FakeExecutor
) -> None:
    first, second = (
        in_notebook(f"%triton_validate softmax v1 --seed {n} --bg").value for n in (1, 2)
    )
    assert gate.reached.wait(WAIT_S)
    assert first.cancel() is True
    with pytest.raises(CancelledError, match="validate softmax v1 was stopped") as stopped:
        first.result(WAIT_S)
    lines = stopped.value._render_traceback_()  # type: ignore[attr-defined]
    assert lines == ["CancelledError: validate softmax v1 was stopped"]
    assert first.status == "cancelled"
    assert second.result(WAIT_S).passed
    assert "! INTERRUPTED" in "".join(text for _, text, _ in shown(in_notebook))


# ------------------------------------------------------------------------------------ failures


def test_a_failed_verdict_is_shown_and_raised_by_the_handle(
    in_notebook: Shell, engine: FakeExecutor, lab: Lab
) -> None:
    in_notebook.write("v1")
    engine.verdicts[lab.source("softmax", "v1").sha256] = Status.FAILED
    job = in_notebook("%triton_validate softmax v1 --bg").value
    with pytest.raises(KernelFailure) as raised:
        job.result(WAIT_S)
    assert raised.value.value.status is Status.FAILED
    assert job.status == "failed"
    assert "✗ WRONG  softmax v1" in shown(in_notebook)[-1][1]
    job = in_notebook("%triton_validate softmax v1 --bg --no-raise").value
    assert job.result(WAIT_S).status is Status.FAILED


def test_an_error_is_shown_and_raised_by_the_handle(in_notebook: Shell) -> None:
    job = in_notebook("%triton_validate softmax v9 --bg").value
    with pytest.raises(UnknownVersion):
        job.result(WAIT_S)
    assert job.status == "failed"
    assert shown(in_notebook)[-1][1].startswith("✗ UnknownVersion: ")


def test_a_fault_of_our_own_is_not_swallowed(in_notebook: Shell, engine: FakeExecutor) -> None:
    def breaks(_job: Any) -> Outcome:
        raise ZeroDivisionError("a bug")

    in_notebook.write("v1")
    engine.answer = breaks
    job = in_notebook("%triton_validate softmax v1 --bg").value
    with pytest.raises(ZeroDivisionError):
        job.result(WAIT_S)
    assert "✗ ZeroDivisionError: a bug" in shown(in_notebook)[-1][1]
    assert in_notebook("%triton_validate softmax v1 --bg").value.result(WAIT_S).passed


# --------------------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    "line", ["%unload_ext triton_magics", "%config TritonMagics.workspace = 'elsewhere'"]
)
def test_unloading_and_moving_end_what_runs(shell: Shell, gate: Gate, line: str) -> None:
    jobs = [shell("%triton_validate softmax v1 --bg").value for _ in range(2)]
    assert gate.reached.wait(WAIT_S)
    assert shell(line).error is None
    assert [job.status for job in jobs] == ["cancelled", "cancelled"]
    assert not [t for t in threading.enumerate() if t.name == "triton-background"]


def test_what_takes_no_time_has_no_such_option(shell: Shell) -> None:
    assert "unrecognized arguments: --bg" in str(shell("%triton_best softmax --bg").error)


# --------------------------------------------------------------------------- in a real kernel

NEVER_ENDS = "import time\n\n\ndef triton_gelu(x):\n    print('here I am')\n    time.sleep(600)\n"
DESCENDANTS = """
def _below(pid):
    try:
        own = [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    except OSError:
        return []
    return [p for child in own for p in (child, *_below(child))]
import os; _below(os.getpid())
"""


def until(kernel: Kernel, text: str) -> dict[str, Any]:
    """Return the first message between two cells that contains the text."""
    while True:
        message = kernel.client.get_iopub_msg(timeout=WAIT_S)
        if text in str(message["content"]):
            return message


def open_pidfds(pids: list[int]) -> list[int]:
    """Return a pidfd for each process that still runs."""
    ends = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            ends.append(os.pidfd_open(pid))
    return ends


@pytest.mark.in_turn
def test_a_restart_during_a_job_leaves_no_process(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        kernel("%load_ext triton_magics\n%config TritonMagics.device = 'interpreter'")
        kernel("%triton_op gelu -q")
        kernel(f"%%triton_kernel gelu v1 --no-compile -q\n{NEVER_ENDS}")
        kernel("job = %triton_validate gelu v1 --bg --timeout 200")
        until(kernel, "here I am")
        assert kernel("job.status").text == "'running'"
        line = until(kernel, "validate gelu v1")
        assert line["msg_type"] == "update_display_data"
        assert kernel("job.cancel()").text == "True"
        assert kernel("job.result(60)").of("error")[0]["ename"] == "CancelledError"
        kernel("job = %triton_validate gelu v1 --bg --timeout 200")
        until(kernel, "here I am")
        ends = open_pidfds(ast.literal_eval(kernel(DESCENDANTS).text))
        assert len(ends) >= 2  # the supervisor and the worker
        kernel.manager.restart_kernel(now=True)
        kernel.client.wait_for_ready(timeout=WAIT_S)
        for end in ends:
            assert select.select([end], [], [], WAIT_S)[0]
            os.close(end)
        again = kernel(
            f"import sys; sys.path.insert(0, {str(REPOSITORY)!r})\n%load_ext triton_magics"
        )
        assert again.status == "ok"
        assert "gelu" in kernel("%triton_status gelu").text


AT_THE_END = """
import threading
from tests.execution_kit import scripted_job
from tests.fake_executor import FakeExecutor
from triton_magics.notebook.background import Job, TerminalOutput
from triton_magics.session.job_manager import JobManager

begun, stopped = threading.Event(), threading.Event()

def answer(job):
    begun.set()
    stopped.wait(60)
    raise KeyboardInterrupt

def work(hear):
    manager.run(scripted_job("answers"))
    raise KeyboardInterrupt

engine = FakeExecutor()
engine.answer, engine.on_cancel = answer, stopped.set
manager = JobManager(engine)
job = Job("validate softmax v1", passes=bool)
job.show(TerminalOutput())
job.start(manager, work)
assert begun.wait(60)
"""


def test_a_process_that_ends_cancels_its_jobs_first() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", AT_THE_END],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=True,
    )
    assert ran.stdout.strip().endswith("! validate softmax v1 · cancelled")
    assert ran.stderr == ""
