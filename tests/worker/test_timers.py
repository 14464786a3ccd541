"""What is a valid sample, how long the gate is, what a timer adds."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from tests.worker.harness import CPU
from tests.worker.sessions import (
    LateTimer,
)
from triton_magics.worker import timers
from triton_magics.worker.pretend import pretending
from triton_magics.worker.timers import Call, Gate, Timer, Try, Unstable, Watch


class Tried(Timer):
    """Each call's tries come from a script: microseconds, and why it does not count."""

    def __init__(self, *script: list[tuple[float, str | None]]) -> None:
        self.script = list(script)
        self.given_up = 0

    def give_up(self) -> None:
        self.given_up += 1

    def tries(self, calls: Sequence[Call], todo: Sequence[int]) -> list[Try]:
        made = self.script.pop(0)
        assert len(made) == len(todo)
        return [Try(us, calls[i].act(), why) for (us, why), i in zip(made, todo, strict=True)]


def test_only_what_was_no_valid_sample_is_timed_again_and_the_reason_is_kept() -> None:
    timer = Tried([(5.0, None), (9.0, timers.SLOW), (6.0, None)], [(7.0, None)])
    made = timer.run([Call(lambda i=i: i) for i in range(3)])
    assert [(s.raw_us, s.value) for s in made] == [(5.0, 0), (7.0, 1), (6.0, 2)]
    assert timer.given_up == 0
    assert [s.discarded for s in made] == [(), (timers.SLOW,), ()]


def test_a_call_without_a_valid_sample_says_why_each_try_was_none() -> None:
    tries = [[(5.0, "compiled meanwhile")], *[[(9.0, timers.SLOW)]] * (timers.MAX_TRIES - 1)]
    with pytest.raises(Unstable, match=r"compiled meanwhile \(1 times\), .*gate \(3 times\)"):
        (timer := Tried(*tries)).run([Call(lambda: 0)])
    assert timer.given_up == 1


class Streams:
    """A GPU of which only the current stream is real; its events take 5 us."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.current = "own"
        self.timed: list[str] = []
        answers = {
            "current_device": lambda: 0,
            "current_stream": lambda _device=None: self.current,
            "set_stream": self.set_stream,
            "Event": lambda **_: self,
            "synchronize": lambda _device=None: None,
            "_sleep": lambda _cycles: None,
        }
        for name, answer in answers.items():
            monkeypatch.setattr(torch.cuda, name, answer, raising=False)
        monkeypatch.setattr(timers, "flushed", lambda _: lambda: None)

    def set_stream(self, stream: str) -> None:
        self.current = stream

    def record(self, stream: str) -> None:
        self.timed.append(stream)

    def query(self) -> bool:
        return False

    def elapsed_time(self, _end: object) -> float:
        return 0.005


def test_an_output_is_taken_on_the_stream_that_was_timed_whichever_the_call_leaves_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Streams(monkeypatch)
    timer = timers.GatedTimer(2**20, cold=True)

    def leaves_another() -> None:
        gpu.set_stream("its" if gpu.current == "own" else "own")

    seen: list[str] = []
    call = Call(
        leaves_another,
        before=lambda: seen.append(gpu.current),
        fresh=lambda: seen.append(gpu.current),
        kept=lambda _: seen.append(gpu.current),
    )
    made = timer.run([call] * 3)
    assert [s.raw_us for s in made] == [5.0] * 3
    assert set(seen) == set(gpu.timed) == {"own"}
    assert len(seen) == 3 * 3


def told(gate: Gate, host_us: float, times: int) -> float:
    """How long a gate is after so many calls that the host was in time for."""
    for _ in range(times):
        gate.tell(host_us, closed=True)
    return gate.us


def test_a_gate_leaves_a_quarter_of_room_and_four_deviations_where_the_host_is_restless() -> None:
    assert told(Gate(), 80.0, 200) == pytest.approx(100.0)
    gate = Gate()
    for _ in range(200):
        gate.tell(70.0, closed=True)
        gate.tell(90.0, closed=True)
    assert gate.us == pytest.approx(80 + 4 * 10, rel=0.05)
    assert told(gate, 1.0, 200) == timers.MIN_GATE_US


def test_a_gate_grows_at_once_where_it_was_too_short_and_forgets_a_hiccup() -> None:
    told(gate := Gate(), 80.0, 200)
    gate.tell(10_000.0, closed=False)
    assert gate.us == pytest.approx(80 + 120 / 8 + 4 * 120 / 4)
    assert told(gate, 80.0, 30) < 105
    told(gate, 1.0, 200)
    gate.tell(45.0, closed=False)
    assert gate.us == 2 * timers.MIN_GATE_US
    assert gate.cycles == gate.us * timers.CYCLES_PER_US
    for _ in range(20):
        gate.tell(1e6, closed=False)
    assert gate.us == timers.MAX_GATE_US


def gauged(
    monkeypatch: pytest.MonkeyPatch, own_us: dict[str, float], raw_us: dict[str, Sequence[float]]
) -> timers.Gauged:
    """A timer gauged with kernels that take so long through it, in turn."""
    called: list[str] = []
    tiny = {name: partial(called.append, name) for name in raw_us}
    turns = {name: itertools.cycle(us) for name, us in raw_us.items()}
    monkeypatch.setattr(timers, "tiny_kernels", lambda: tiny)
    return LateTimer(lambda: next(turns[called[-1]])).gauged(own_us)


def test_what_a_timer_adds_is_what_most_places_say_of_a_kernel_that_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = {"empty": [2.66], "store": [3.10, 3.18, 3.10, 3.18, 3.10, 3.18, 3.10, 9.0]}
    made = gauged(monkeypatch, {"empty": 0.55, "store": 0.80}, raw)
    assert made.floor_us == pytest.approx(2.66)
    assert made.added_us == pytest.approx(3.14 - 0.80)  # 2.11 by the empty one
    assert made.tick_us == pytest.approx(0.08)


def test_without_cupti_what_a_timer_adds_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    made = gauged(monkeypatch, {}, {"empty": [2.87], "store": [3.2]})
    assert (made.floor_us, made.added_us) == (pytest.approx(2.87), None)
    watch = Watch(LateTimer(lambda: 5.0), made.added_us, made.tick_us)
    assert watch.net_us([5.0]) == (5.0,)


def test_a_timer_is_gauged_with_writes_to_places_in_different_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[torch.Tensor] = []
    zeros = torch.zeros

    def kept(*shape: int, **options: Any) -> torch.Tensor:
        made.append(zeros(*shape, **options))
        return made[-1]

    monkeypatch.setattr(torch, "zeros", kept)
    with pretending(CPU):
        kernels = timers.tiny_kernels()
        assert list(kernels) == ["empty", "store"]
        (places,) = made
        kernels["empty"]()
        assert not places.any()
        for i in range(timers.GAUGE_SAMPLES):
            kernels["store"]()
            assert int(places.any(1).sum()) == i + 1
    assert {int(n) for n in (places != 0).sum(1)} == {128 * 128 - 1}  # one of them is written as 0
    assert places.stride(0) * places.element_size() >= 2 * 2**20
