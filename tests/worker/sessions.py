"""Benchmarks as tests want them: a job in the interpreter, and a session over scripted times."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import ModuleType

import torch

from tests.worker.harness import KERNELS, Recorder, version_of
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef
from triton_magics.model import Benchmark
from triton_magics.worker import bench, verdicts
from triton_magics.worker.load import Loaded
from triton_magics.worker.providers import Provider
from triton_magics.worker.rounds import Session
from triton_magics.worker.timers import Call, Sample, Timer, Try, Watch


def job(kernel: str = "sum_right", op: str = "sum", **changes: object) -> BenchJob:
    given = {
        "op": OpRef(name=op),
        "versions": (version_of(KERNELS / f"{kernel}.py", op),),
        "sizes": ("small",),
        "runs": 3,
        "dtype": "float32",
        "seed": 5,
        "budget_s": 30.0,
        **changes,
    }
    return BenchJob(**given)


def benched(**changes: object) -> Benchmark:
    answer, _ = bench.run(job(**changes), Recorder())
    assert isinstance(answer, Benchmark)
    return answer


class ScriptedTimer(Timer):
    """Calls for real; the time of each call comes from a script, by who called."""

    def __init__(self, raw_us: Callable[[], float]) -> None:
        self.raw_us = raw_us

    def run(self, calls: Sequence[Call]) -> list[Sample]:
        return [self.one(call) for call in calls]

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        raise NotImplementedError

    def one(self, call: Call) -> Sample:
        call.before()
        call.fresh()
        return Sample(self.raw_us(), call.kept(call.act()), ())

    def settle(self) -> None:
        pass


class LateTimer(ScriptedTimer):
    """Asks the script after the call, so that it may depend on who was called."""

    def one(self, call: Call) -> Sample:
        call.fresh()
        value = call.act()
        return Sample(self.raw_us(), call.kept(value), ())


def session(
    *providers: Provider, raw_us: Callable[[], float] = lambda: 100.0, **changes: object
) -> Session:
    """A session over scripted times, on small tensors; the op and its answers are real."""
    op = replace(ops.load("sum"), sizes={"small": (16, 16), "medium": (32, 32), "large": (64, 64)})
    torchs = Provider("torch", op.reference)
    return Session(
        job=job(**{"runs": 10, **changes}),
        op=op,
        providers=(torchs, *providers, Provider(verdicts.AGAIN, op.reference)),
        watch=Watch(ScriptedTimer(raw_us), added_us=2.5, tick_us=0.032),
        report=Recorder(),
        deadline=time.monotonic() + 60,
    )


def by(timer: Timer, one: Session) -> Session:
    """The same session by another timer."""
    return replace(one, watch=replace(one.watch, timer=timer))


def provider(call: Callable[..., object], name: str = "v1_a") -> Provider:
    """A version whose code is a Python function."""
    loaded = Loaded(version_of(KERNELS / "sum_right.py", "sum"), ModuleType("made_up"), call)
    return Provider(name, call, loaded)


def right(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)
