"""Tests of the warm-up in steps, which stops when a job waits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch

from tests.execution_kit import VERSION
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import PlanJob
from triton_magics.harness import warm_up
from triton_magics.harness.correctness.case_inputs import has_few_elements
from triton_magics.harness.correctness.case_plan import DeviceFacts, plan_cases
from triton_magics.harness.process import device
from triton_magics.model import Case


@pytest.mark.parametrize(
    ("job_at", "done", "n_checks"), [(1, False, 1), (2, False, 2), (9, True, 2)]
)
def test_warm_up_stops_when_a_job_waits(job_at: int, done: bool, n_checks: int) -> None:
    checks: list[int] = []

    def is_wanted() -> bool:
        checks.append(len(checks) + 1)
        return checks[-1] == job_at

    assert warm_up.run("interpreter", is_wanted) is done
    assert len(checks) == n_checks


def test_steps_for_timings_come_last_and_have_their_own_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    steps = {"interpreter": (lambda sample: events.append("validate"),)}
    timing = {"interpreter": (lambda sample: events.append("time"),)}
    monkeypatch.setattr(warm_up, "STEPS", steps)
    monkeypatch.setattr(warm_up, "TIMING_STEPS", timing)
    assert warm_up.run("interpreter")
    assert events == ["validate", "time"]
    assert not warm_up.run("interpreter", lambda: False, lambda: True)
    assert events == ["validate", "time", "validate"]


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_torch_uses_half_of_the_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    device.limit_torch_threads()
    assert torch.get_num_threads() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # the user's setting has priority
    device.limit_torch_threads()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("dtype", warm_up.DTYPES)
def test_a_step_makes_every_kind_of_values_of_a_plan(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    values: set[str] = set()
    make = warm_up.case_inputs.make_pristine

    def record(op: operators.Op, case: Case, where: torch.device) -> tuple[object, ...]:
        values.update((case.special, case.regime))
        assert not has_few_elements(op, case)  # a GPU draws none of those
        return make(op, case, where)

    ran: list[Case] = []
    monkeypatch.setattr(warm_up.case_inputs, "make_pristine", record)
    monkeypatch.setattr(warm_up, "_run_case", lambda subject, case: ran.append(case))
    sample = warm_up.WarmUpVersion(OpRef(name="softmax"), VERSION)
    monkeypatch.setattr(warm_up, "_subject", lambda *_: None)
    warm_up._judge_any_values(sample, torch.device("cpu"), dtype)
    job = PlanJob(op=sample.op, dtypes=(dtype,), plan="full", seed=5, device_kind="gpu")
    cases = plan_cases(operators.load("softmax"), job, DeviceFacts()).cases
    drawn = [c for c in cases if math.prod(c.shape) <= warm_up.MOST_DRAWN]
    assert {c.special for c in drawn} | {c.regime for c in drawn} <= values
    assert [(c.special, c.dtype) for c in ran] == [("nonfinite", dtype)] * 2
    assert [has_few_elements(operators.load("softmax"), c) for c in ran] == [
        False,
        True,
    ]  # judged on the GPU, on the CPU


class Link:
    """The subject process, which times at the same time."""

    def __init__(self) -> None:
        self.has_answered = False

    def request(self, function: str, reply: type, *, meanwhile: Callable[[], None], **_: object):
        meanwhile()
        self.has_answered = True


def test_an_error_while_both_processes_time_waits_for_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("no kernel runs")

    link = Link()
    monkeypatch.setattr(warm_up.subject_process, "link", lambda: link)
    monkeypatch.setattr(warm_up, "time_sample", fail)
    sample = warm_up.WarmUpVersion(OpRef(name="softmax"), VERSION)
    with pytest.raises(RuntimeError, match="no kernel runs"):
        warm_up._time(sample, ("small",))
    assert link.has_answered
