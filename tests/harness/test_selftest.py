"""The self-test of the timing, with sound and unsound clocks."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from tests.harness.kit import Recorder
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob, SelfTestJob
from triton_magics.harness.timers.gated_timer import (
    HOST_TOO_SLOW,
    CalibratedTimer,
    Sample,
    TimedAttempt,
    TimedCall,
    Timer,
    UnstableTiming,
)
from triton_magics.harness.timing import selftest_job
from triton_magics.harness.timing.baselines import Provider
from triton_magics.harness.timing.rounds import TimingSession, time_all_sizes
from triton_magics.harness.timing.speed_verdicts import CONTROL
from triton_magics.model import NotTimedCode, SelfCheck, SelfTest, Status

SAME, LONGER, TWICE = (
    "a kernel against itself is the same", "2 % longer is slower", "100 % longer is slower",
)  # fmt: skip
CYCLES_A_US = 2000


@dataclass
class CycleTimer(Timer):
    """A timer whose times follow from the requested cycles, with noise."""

    noise: float = 0.001
    blind: bool = False
    sees_the_host: bool = True
    host_is_late: bool = False
    lasted: list[int] = field(default_factory=list)
    draw: random.Random = field(default_factory=lambda: random.Random(3))

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        raise NotImplementedError

    def synchronize(self) -> None:
        pass

    def calls_per_run(self, raw_us: float, sets: int) -> int:
        return 1

    def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
        return [self.one(call) for call in calls]

    def one(self, call: TimedCall) -> Sample:
        call.before_gate()
        call.fill_inputs()
        self.lasted.append(0)
        self.host_is_late = False
        value = call.function()
        if self.sees_the_host and self.host_is_late:
            raise UnstableTiming([HOST_TOO_SLOW] * 4)
        us = 2.0 if self.blind else 2.0 + self.lasted[-1] / CYCLES_A_US
        return Sample(us * (1 + self.draw.gauss(0, self.noise)), call.copy_output(value), ())


def run_checks(clock: CycleTimer, **changes: Any) -> dict[str, SelfCheck]:
    """Run the self-test's checks with this clock; on the CPU a separate stream is simulated."""
    op = replace(operators.load(selftest_job.OP), sizes={"small": (4, 8)})

    def lasting(cycles: int) -> Callable[..., torch.Tensor]:
        def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
            clock.lasted[-1:] = [cycles]
            return x + alpha * y

        return add

    def race(calls: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        torch_provider = Provider("torch", op.reference)
        providers = [Provider(name, call) for name, call in calls.items()]
        job = BenchJob(
            op=OpRef(name=selftest_job.OP), versions=(), sizes=("small",), runs=10, dtype="float32",
            seed=1, budget_s=60,
        )  # fmt: skip
        session = TimingSession(
            job=job, op=op, providers=(torch_provider, *providers, Provider(CONTROL, op.reference)),
            timer=CalibratedTimer(clock, added_us=None, tick_us=0.032), report=Recorder(),
            deadline=time.monotonic() + 60,
        )  # fmt: skip
        return time_all_sizes(session)

    return {check.name: check for check in selftest_job.run_checks(race, lasting)}


def test_sound_clock_passes_all_checks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest_job, "_cheats", late(clock := CycleTimer()))
    checks = run_checks(clock)
    assert {name: c.passed for name, c in checks.items()} == {
        SAME: True, LONGER: True, TWICE: True, "a late host": True,
    }  # fmt: skip
    assert checks[LONGER].outcome.startswith("slower: 0.98")
    assert checks[TWICE].outcome.startswith("slower: 0.5")
    assert HOST_TOO_SLOW in checks["a late host"].outcome


def test_clock_that_misses_late_host_time_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest_job, "_cheats", late(clock := CycleTimer(sees_the_host=False)))
    checks = run_checks(clock)
    assert not checks["a late host"].passed
    assert checks["a late host"].outcome == "it was timed like any other"


def test_clock_that_cannot_rank_kernels_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest_job, "_cheats", lambda add: {})
    blind = run_checks(CycleTimer(blind=True, noise=0.0))
    assert [(c.passed, c.outcome) for c in blind.values()] == [(False, selftest_job.USELESS_CLOCK)]
    noisy = run_checks(CycleTimer(noise=0.2))
    assert not noisy[LONGER].passed


def test_work_that_does_not_wait_has_a_wrong_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(add: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, *rest: add(torch.zeros_like(x), torch.zeros_like(y), *rest)

    monkeypatch.setattr(
        selftest_job, "_cheats", lambda add: {"aside": (hasty(add), NotTimedCode.WRONG_OUTPUT)}
    )
    check = run_checks(CycleTimer())["aside"]
    assert check.passed
    assert check.outcome.startswith("it does not compute vector_add: ")


def test_self_test_without_a_gpu_checks_nothing() -> None:
    result, retire = selftest_job.run(SelfTestJob(), Recorder())
    assert isinstance(result, SelfTest)
    assert (result.status, result.checks, retire) == (Status.NO_GPU, (), False)
    assert "no GPU was found" in str(result.message)


def late(clock: CycleTimer) -> Callable[[Callable[..., Any]], dict[str, tuple[Any, str]]]:
    """Return a cheat with late host time, which this clock may see."""

    def cheats(add: Callable[..., Any]) -> dict[str, tuple[Any, str]]:
        def call(*inputs: Any) -> Any:
            clock.host_is_late = True
            return add(*inputs)

        return {"a late host": (call, NotTimedCode.HOST_TOO_SLOW)}

    return cheats
