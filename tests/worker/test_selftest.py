"""The self-test of the timing: what it says of a sound clock, and of clocks that are not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from tests.worker.harness import Recorder
from triton_magics import ops
from triton_magics.engine.protocol import BenchJob, OpRef, SelfTestJob
from triton_magics.model import SelfCheck, SelfTest, Status
from triton_magics.worker import selftest
from triton_magics.worker.providers import Provider
from triton_magics.worker.rounds import Session, all_sizes
from triton_magics.worker.timers import SLOW, Call, Sample, Timer, Try, Unstable, Watch
from triton_magics.worker.verdicts import AGAIN

SAME, LONGER, TWICE = (
    "a kernel against itself is the same", "2 % longer is slower", "100 % longer is slower",
)  # fmt: skip
CYCLES_A_US = 2000


@dataclass
class Clock(Timer):
    """Microseconds of each call from the cycles that it was asked for, with noise."""

    noise: float = 0.001
    blind: bool = False
    sees_the_host: bool = True
    host_is_late: bool = False
    lasted: list[int] = field(default_factory=list)
    draw: random.Random = field(default_factory=lambda: random.Random(3))

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        raise NotImplementedError

    def settle(self) -> None:
        pass

    def calls_a_run(self, raw_us: float, sets: int) -> int:
        return 1

    def run(self, calls: Sequence[Call]) -> list[Sample]:
        return [self.one(call) for call in calls]

    def one(self, call: Call) -> Sample:
        call.before()
        call.fresh()
        self.lasted.append(0)
        self.host_is_late = False
        value = call.act()
        if self.sees_the_host and self.host_is_late:
            raise Unstable(f"no valid run in 4 tries: {SLOW} (4 times)")
        us = 2.0 if self.blind else 2.0 + self.lasted[-1] / CYCLES_A_US
        return Sample(us * (1 + self.draw.gauss(0, self.noise)), call.kept(value), ())


def checked(clock: Clock, **changes: Any) -> dict[str, SelfCheck]:
    """The self-test's checks with this clock; on the CPU a stream of one's own is simulated."""
    op = replace(ops.load(selftest.OP), sizes={"small": (4, 8)})

    def lasting(cycles: int) -> Callable[..., torch.Tensor]:
        def add(x: torch.Tensor, y: torch.Tensor, alpha: float = 1.0) -> torch.Tensor:
            clock.lasted[-1:] = [cycles]
            return x + alpha * y

        return add

    def race(calls: dict[str, Callable[..., Any]]) -> dict[str, Any]:
        torchs = Provider("torch", op.reference)
        providers = [Provider(name, call) for name, call in calls.items()]
        job = BenchJob(
            op=OpRef(name=selftest.OP), versions=(), sizes=("small",), runs=10, dtype="float32",
            seed=1, budget_s=60,
        )  # fmt: skip
        session = Session(
            job=job, op=op, providers=(torchs, *providers, Provider(AGAIN, op.reference)),
            watch=Watch(clock, added_us=None, tick_us=0.032), report=Recorder(),
            deadline=time.monotonic() + 60,
        )  # fmt: skip
        return all_sizes(session)

    return {check.what: check for check in selftest.checked(race, lasting)}


def test_a_sound_clock_ranks_known_kernels_and_a_late_host_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest, "_cheats", late(clock := Clock()))
    told = checked(clock)
    assert {what: c.passed for what, c in told.items()} == {
        SAME: True, LONGER: True, TWICE: True, "a late host": True,
    }  # fmt: skip
    assert told[LONGER].said.startswith("slower: 0.98")
    assert told[TWICE].said.startswith("slower: 0.5")
    assert SLOW in told["a late host"].said


def test_a_clock_that_does_not_see_the_host_is_not_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "_cheats", late(clock := Clock(sees_the_host=False)))
    told = checked(clock)
    assert not told["a late host"].passed
    assert told["a late host"].said == "it was timed like any other"


def test_a_clock_that_can_not_tell_kernels_apart_is_not_sound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(selftest, "_cheats", lambda add: {})
    blind = checked(Clock(blind=True, noise=0.0))
    assert [(c.passed, c.said) for c in blind.values()] == [
        (False, "they don't: this clock tells nothing")
    ]
    noisy = checked(Clock(noise=0.2))
    assert not noisy[LONGER].passed


def test_work_that_does_not_wait_is_left_out_for_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hasty(add: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, y, *rest: add(torch.zeros_like(x), torch.zeros_like(y), *rest)

    monkeypatch.setattr(selftest, "_cheats", lambda add: {"aside": (hasty(add), selftest.UNEQUAL)})
    told = checked(Clock())["aside"]
    assert told.passed
    assert told.said.startswith("it does not compute what vector_add is")


def test_without_a_gpu_it_says_so_and_tests_nothing() -> None:
    made, retire = selftest.run(SelfTestJob(), Recorder())
    assert isinstance(made, SelfTest)
    assert (made.status, made.checks, retire) == (Status.NO_GPU, (), False)
    assert "a GPU; here is none" in str(made.message)


def late(clock: Clock) -> Callable[[Callable[..., Any]], dict[str, tuple[Any, str]]]:
    """A cheat whose host is late, as this clock may see."""

    def cheats(add: Callable[..., Any]) -> dict[str, tuple[Any, str]]:
        def call(*inputs: Any) -> Any:
            clock.host_is_late = True
            return add(*inputs)

        return {"a late host": (call, SLOW)}

    return cheats
