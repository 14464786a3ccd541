"""Benchmarks for tests: a job in the interpreter, and a session with scripted times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

import torch

from tests.harness.kit import KERNELS, Recorder, version_of
from triton_magics import operators
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import BenchJob
from triton_magics.harness.load import LoadedVersion
from triton_magics.harness.timers.gated_timer import (
    CalibratedTimer,
    Sample,
    TimedAttempt,
    TimedCall,
    Timer,
)
from triton_magics.harness.timing import bench_job, speed_verdicts
from triton_magics.harness.timing.baselines import Provider
from triton_magics.harness.timing.rounds import TimingSession
from triton_magics.model import Benchmark


def job(kernel: str = "sum_right", op: str = "sum", **changes: object) -> BenchJob:
    fields = {
        "op": OpRef(name=op),
        "versions": (version_of(KERNELS / f"{kernel}.py", op),),
        "sizes": ("small",),
        "runs": 3,
        "dtype": "float32",
        "seed": 5,
        "budget_s": 600.0,
        **changes,
    }
    return BenchJob(**fields)


def run_bench(**changes: object) -> Benchmark:
    answer, _ = bench_job.run(job(**changes), Recorder())
    assert isinstance(answer, Benchmark)
    return answer


class ScriptedTimer(Timer):
    """A timer that calls the function; the times come from a script."""

    def __init__(self, raw_us: Callable[[], float]) -> None:
        self.raw_us = raw_us

    def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
        return [self.one(call) for call in calls]

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        raise NotImplementedError

    def one(self, call: TimedCall) -> Sample:
        call.before_gate()
        call.fill_inputs()
        return Sample(self.raw_us(), call.copy_output(call.function()), ())

    def synchronize(self) -> None:
        pass


class LateTimer(ScriptedTimer):
    """A timer that reads the script after the call, so that times can depend on the function."""

    def one(self, call: TimedCall) -> Sample:
        call.fill_inputs()
        value = call.function()
        return Sample(self.raw_us(), call.copy_output(value), ())


def session(
    *providers: Provider, raw_us: Callable[[], float] = lambda: 100.0, **changes: object
) -> TimingSession:
    """Return a session with scripted times on small tensors; the op and its answers are real."""
    op = replace(
        operators.load("sum"), sizes={"small": (16, 16), "medium": (32, 32), "large": (64, 64)}
    )
    torch_provider = Provider("torch", op.reference)
    return TimingSession(
        job=job(**{"runs": 10, **changes}),
        op=op,
        providers=(torch_provider, *providers, Provider(speed_verdicts.CONTROL, op.reference)),
        timer=CalibratedTimer(ScriptedTimer(raw_us), added_us=2.5, tick_us=0.032),
        report=Recorder(),
        deadline=time.monotonic() + 60,
    )


def with_timer(timer: Timer, one: TimingSession) -> TimingSession:
    """Return the session with another timer."""
    return replace(one, timer=replace(one.timer, base=timer))


def provider(call: Callable[..., object], name: str = "v1_a") -> Provider:
    """Return a version whose code is a Python function."""
    loaded = LoadedVersion(version_of(KERNELS / "sum_right.py", "sum"), ModuleType("made_up"), call)
    return Provider(name, call, loaded)


def right(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)
