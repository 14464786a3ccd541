# ruff: noqa: F811 (a fixture is imported, and named again by each test that asks for it)
"""Jobs that end without a verdict, and the line that a replay finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fake_executor import FakeExecutor, environment
from tests.lab_harness import engine, lab, write  # noqa: F401 (engine, lab: fixtures)
from triton_magics.errors import UserError, WorkerError
from triton_magics.execution import Outcome
from triton_magics.execution.job_answers import WorkerFault
from triton_magics.execution.job_requests import ValidateJob
from triton_magics.lab import Lab
from triton_magics.model import (
    RACE,
    Case,
    CaseResult,
    CaseStatus,
    Cause,
    CauseCode,
    KernelError,
    Mismatch,
    Replay,
    Status,
    Validation,
    ValidationRequest,
)


def lost(status: str, **more: object) -> Outcome:
    cases = [Case(shape=(n, n), dtype="float32", seed=n) for n in (1, 2, 3)]
    planned = tuple(CaseResult(case=c, status=CaseStatus.NOT_RUN, reason="-") for c in cases)
    done = CaseResult(case=cases[0], status=CaseStatus.PASSED, error_share=0.1)
    arguments = {
        "status": status, "planned": planned, "cases": (done,),
        "stage": "validating", "case": cases[1], "environment": environment("gpu"),
        "detail": "no answer in 20 s", **more,
    }  # fmt: skip
    return Outcome(**arguments)


@pytest.mark.parametrize(
    ("ending", "status", "case_status"),
    [
        ("timeout", Status.TIMEOUT, CaseStatus.TIMEOUT),
        ("crashed", Status.CRASHED, CaseStatus.CRASHED),
        ("protocol", Status.CRASHED, CaseStatus.CRASHED),
    ],
)
def test_a_lost_process_is_a_status_with_its_finished_cases(
    lab: Lab, engine: FakeExecutor, ending: str, status: Status, case_status: CaseStatus
) -> None:
    write(lab, "v1")
    engine.answer = lambda job: lost(ending)
    result = lab.validate("softmax", "v1")
    assert isinstance(result, Validation)
    assert result.status is status
    assert [c.status for c in result.cases] == [CaseStatus.PASSED, case_status, CaseStatus.NOT_RUN]
    assert "no answer in 20 s" in str(result.message)
    assert lab.validation("softmax", "v1") == result


CRASHED = "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n  File "


CRASHED += (
    '"/x/watch.py", line 9 in watch\n\nCurrent thread 0x2 [python] (most recent call first):\n'
)


@pytest.mark.parametrize(
    ("messages", "at"),
    [
        ({"stack": CRASHED.replace("Current thread 0x2 [python]", "Thread 0x2")}, True),
        ({"output": CRASHED}, True),
        ({"output": "a version that prints such lines:\n"}, False),
    ],
    ids=["timeout", "crash", "neither"],
)
def test_a_lost_process_names_the_line_of_its_cell(
    lab: Lab, engine: FakeExecutor, tmp_path: Path, messages: dict[str, str], at: bool
) -> None:
    write(lab, "v1")
    file = tmp_path / "kernels/softmax/v1_baseline.py"
    shown = "kernels/softmax/v1_baseline.py"
    frames = f'  File "/x/torch.py", line 3 in sum\n  File "{shown}", line 7 in triton_softmax\n'
    ((name, text),) = messages.items()
    engine.answer = lambda job: lost("timeout", **{name: text + frames})
    validation = lab.validate("softmax", "v1")
    assert file.read_text().splitlines()[6] == "    return x  # v1as it is"
    where = ", at cell line 6 (kernels/softmax/v1_baseline.py:7): return x  # v1as it is"
    assert str(validation.message).endswith(where) is at
    assert str(validation.cases[1].reason).endswith(where) is at


def test_a_timeout_on_a_gpu_says_that_its_kernel_did_not_end(
    lab: Lab, engine: FakeExecutor
) -> None:
    write(lab, "v1")
    frames = '  File "/x/torch/cuda/__init__.py", line 9 in synchronize\n'
    frames += '  File "/x/run.py", line 7 in run\n'
    stack = f"{CRASHED}{frames}".replace("Current thread", "Thread")
    engine.answer = lambda job: lost("timeout", stack=stack)
    validation = lab.validate("softmax", "v1")
    assert str(validation.message).endswith("no answer in 20 s: a kernel on the GPU did not end")
    engine.answer = lambda job: lost("timeout")
    mute = lab.validate("softmax", "v1")
    assert str(mute.message).endswith("it hangs in the GPU's driver, or was stopped")


def test_an_interrupt_stores_what_was_done_and_goes_on_up(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    engine.answer = lambda job: lost("interrupted")
    with pytest.raises(KeyboardInterrupt):
        lab.validate("softmax", "v1")
    assert isinstance(lab.last, Validation)
    assert lab.last.status is Status.INTERRUPTED
    assert len(lab.last.run_cases) == 2
    assert lab.status("softmax").version("v1").attempts_failed == 0


def test_a_fault_within_a_case_is_raised_with_its_message(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    fault = WorkerFault(user=True, message="softmax has no size 'huge'")
    engine.answer = lambda job: lost("finished", answer=fault)
    with pytest.raises(UserError, match="has no size 'huge'"):
        lab.validate("softmax", "v1")


def test_a_fault_of_ours_is_not_the_kernels(lab: Lab, engine: FakeExecutor) -> None:
    write(lab, "v1")
    fault = WorkerFault(user=False, message="our bug", traceback="there")
    engine.answer = lambda job: Outcome(status="finished", answer=fault)
    with pytest.raises(WorkerError, match="our bug"):
        lab.validate("softmax", "v1")
    mend = WorkerFault(user=True, message="no dtype 'int3'")
    engine.answer = lambda job: Outcome(status="finished", answer=mend)
    with pytest.raises(UserError, match="int3"):
        lab.validate("softmax", "v1")


def test_three_failed_attempts_exhaust_a_version(lab: Lab, engine: FakeExecutor) -> None:
    for i in range(3):
        engine.verdicts[write(lab, "v1", str(i))] = Status.FAILED
        validation = lab.validate("softmax", "v1")
        assert isinstance(validation, Validation)
        assert validation.attempts_failed == i + 1
        assert lab.status("softmax").version("v1").exhausted is (i == 2)


def failing(
    status: CaseStatus, reason: str, kind: str, cause: CauseCode | None = None
) -> Callable[[ValidateJob], Outcome]:
    """Return an executor's answer with two equal failures, the larger shape first."""
    wrong = Mismatch(
        output=0, index=(0, 0), got=1.0, expected=2.0, n_wrong=1, n_elements=91, allowed=0.1,
        where="scattered",
        cause=cause and Cause(code=cause),
    )  # fmt: skip

    def answer(job: ValidateJob) -> Outcome:
        cases = tuple(
            CaseResult(
                case=Case(shape=s, dtype="float32", seed=1), status=status, reason=reason,
                mismatch=wrong if cause else None,
            )
            for s in ((256, 256), (7, 13))
        )  # fmt: skip
        result = Validation(
            op="softmax", version=job.version.version, attempt=1, sha256=job.version.sha256,
            status=Status.FAILED, request=ValidationRequest(seed=1), dtypes=("float32",),
            cases=cases, environment=environment(kind),  # type: ignore[arg-type]
        )  # fmt: skip
        return Outcome(status="finished", answer=result)

    return answer


def test_an_illegal_access_is_replayed_at_the_smallest_shape(
    lab: Lab, engine: FakeExecutor
) -> None:
    write(lab, "v1")
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert engine.jobs[-1].kind == "replay"
    assert engine.jobs[-1].case.shape == (7, 13)
    messages = validation.failed_cases[0].error
    assert messages is not None
    assert messages.message == "reads outside input 0"
    assert validation.failed_cases[1].error is None


def test_a_race_is_the_error_where_a_line_was_searched(
    lab: Lab, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lab, "v1")
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    error = KernelError(kind=RACE, message="both store to out_ptr[16]", cell_line=7, file_line=9)
    case = Case(shape=(7, 13), dtype="float32", seed=1)
    monkeypatch.setattr(engine, "_replay", lambda job: Replay(case=case, error=error))
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert validation.failed_cases[0].error == error
    assert validation.error == error


@pytest.mark.parametrize("is_race", [True, False])
def test_calls_that_differ_are_replayed_for_a_race(
    lab: Lab, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch, is_race: bool
) -> None:
    write(lab, "v1")
    differ = CauseCode.NOT_DETERMINISTIC
    engine.answer = failing(CaseStatus.WRONG_VALUES, "", "gpu", differ)
    error = KernelError(kind=RACE, message="both store to out_ptr[16]", cell_line=7, file_line=9)
    replay = Replay(case=Case(shape=(7, 13), dtype="float32", seed=1), note="no race")
    answer = replay.evolve(error=error, note=None) if is_race else replay
    monkeypatch.setattr(engine, "_replay", lambda job: answer)
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    first, second = validation.failed_cases
    assert first.mismatch is not None
    race = Cause(code=CauseCode.RACE, cell_line=7, file_line=9)
    assert first.mismatch.cause == (race if is_race else Cause(code=differ))
    assert first.error == (error if is_race else None)
    assert second.mismatch is not None
    assert second.mismatch.cause == Cause(code=differ)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "interpreter"),
        (CaseStatus.STALE, "an old answer", "gpu"),
    ],
)
def test_nothing_is_replayed_where_it_would_tell_nothing_new(
    lab: Lab, engine: FakeExecutor, status: CaseStatus, reason: str, kind: str
) -> None:
    write(lab, "v1")
    engine.answer = failing(status, reason, kind)
    lab.validate("softmax", "v1")
    assert "replay" not in [job.kind for job in engine.jobs]


def test_a_verdict_stands_without_an_interpreter_replay(
    lab: Lab, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_interpreter(job: object) -> None:
        raise WorkerError("the worker died before it was ready; numpy is too new")

    write(lab, "v1")
    monkeypatch.setattr(engine, "_replay", no_interpreter)
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    validation = lab.validate("softmax", "v1")
    assert isinstance(validation, Validation)
    assert validation.failed_cases[0].status is CaseStatus.OUT_OF_BOUNDS
    assert validation.failed_cases[0].error is None
    assert any("numpy is too new" in note for note in lab.notes())


def test_a_replay_that_finds_no_line_says_why(
    lab: Lab, engine: FakeExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lab, "v1")
    why = "no access outside a tensor was found"
    monkeypatch.setattr(engine, "_replay", lambda job: Replay(case=job.case, note=why))
    engine.answer = failing(CaseStatus.OUT_OF_BOUNDS, "input 0: 4 bytes", "gpu")
    lab.validate("softmax", "v1")
    assert f"no line found for an access outside a tensor, 7x13 float32: {why}" in lab.notes()
