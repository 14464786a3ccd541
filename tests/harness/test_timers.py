"""Timers: valid samples, gate length and calibration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from tests.harness.kit import CPU
from tests.harness.sessions import (
    LateTimer,
)
from triton_magics.harness.process.fake_gpu import fake_gpu
from triton_magics.harness.timers import gated_timer
from triton_magics.harness.timers.gated_timer import (
    CalibratedTimer,
    Gate,
    TimedAttempt,
    TimedCall,
    Timer,
    UnstableTiming,
)


class ScriptedAttempts(Timer):
    """A timer whose attempts come from a script: microseconds, and why one is invalid."""

    def __init__(self, *script: list[tuple[float, str | None]]) -> None:
        self.script = list(script)
        self.n_resets = 0

    def reset(self) -> None:
        self.n_resets += 1

    def time_once(self, calls: Sequence[TimedCall], todo: Sequence[int]) -> list[TimedAttempt]:
        script = self.script.pop(0)
        assert len(script) == len(todo)
        return [
            TimedAttempt(us, calls[i].function(), why)
            for (us, why), i in zip(script, todo, strict=True)
        ]


def test_only_invalid_samples_are_timed_again() -> None:
    timer = ScriptedAttempts(
        [(5.0, None), (9.0, gated_timer.HOST_TOO_SLOW), (6.0, None)], [(7.0, None)]
    )
    result = timer.run([TimedCall(lambda i=i: i) for i in range(3)])
    assert [(s.raw_us, s.value) for s in result] == [(5.0, 0), (7.0, 1), (6.0, 2)]
    assert timer.n_resets == 0
    assert [s.discarded for s in result] == [(), (gated_timer.HOST_TOO_SLOW,), ()]


def test_call_without_a_valid_sample_gives_the_reasons() -> None:
    attempts = [
        [(5.0, "compiled meanwhile")],
        *[[(9.0, gated_timer.HOST_TOO_SLOW)]] * (gated_timer.MAX_TRIES - 1),
    ]
    with pytest.raises(UnstableTiming, match=r"compiled meanwhile \(1 times\), .*gate \(3 times\)"):
        (timer := ScriptedAttempts(*attempts)).run([TimedCall(lambda: 0)])
    assert timer.n_resets == 1


class Streams:
    """A fake GPU with a current stream; every span takes 5 us."""

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
        monkeypatch.setattr(gated_timer, "make_l2_flush", lambda _: lambda: None)

    def set_stream(self, stream: str) -> None:
        self.current = stream

    def record(self, stream: str) -> None:
        self.timed.append(stream)

    def query(self) -> bool:
        return False

    def elapsed_time(self, _end: object) -> float:
        return 0.005


def test_output_is_copied_on_the_timed_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gpu = Streams(monkeypatch)
    timer = gated_timer.GatedTimer(2**20, cold=True)

    def leaves_another() -> None:
        gpu.set_stream("its" if gpu.current == "own" else "own")

    observed: list[str] = []
    call = TimedCall(
        leaves_another,
        before_gate=lambda: observed.append(gpu.current),
        fill_inputs=lambda: observed.append(gpu.current),
        copy_output=lambda _: observed.append(gpu.current),
    )
    result = timer.run([call] * 3)
    assert [s.raw_us for s in result] == [5.0] * 3
    assert set(observed) == set(gpu.timed) == {"own"}
    assert len(observed) == 3 * 3


def gate_after(gate: Gate, host_us: float, times: int) -> float:
    """Return the gate's length after a number of calls that it was long enough for."""
    for _ in range(times):
        gate.record_host_time(host_us, closed=True)
    return gate.us


def test_gate_has_a_margin_of_a_quarter_or_four_deviations() -> None:
    assert gate_after(Gate(), 80.0, 200) == pytest.approx(100.0)
    gate = Gate()
    for _ in range(200):
        gate.record_host_time(70.0, closed=True)
        gate.record_host_time(90.0, closed=True)
    assert gate.us == pytest.approx(80 + 4 * 10, rel=0.05)
    assert gate_after(gate, 1.0, 200) == gated_timer.MIN_GATE_US


def test_gate_grows_at_once_and_recovers_from_an_outlier() -> None:
    gate_after(gate := Gate(), 80.0, 200)
    gate.record_host_time(10_000.0, closed=False)
    assert gate.us == pytest.approx(80 + 120 / 8 + 4 * 120 / 4)
    assert gate_after(gate, 80.0, 30) < 105
    gate_after(gate, 1.0, 200)
    gate.record_host_time(45.0, closed=False)
    assert gate.us == 2 * gated_timer.MIN_GATE_US
    assert gate.cycles == gate.us * gated_timer.CYCLES_PER_US
    for _ in range(20):
        gate.record_host_time(1e6, closed=False)
    assert gate.us == gated_timer.MAX_GATE_US


def calibrate(
    monkeypatch: pytest.MonkeyPatch,
    tiny_kernel_us: dict[str, float],
    raw_us: dict[str, Sequence[float]],
) -> gated_timer.Calibration:
    """Calibrate a timer with scripted times of the tiny kernels."""
    called: list[str] = []
    tiny = {name: partial(called.append, name) for name in raw_us}
    turns = {name: itertools.cycle(us) for name, us in raw_us.items()}
    monkeypatch.setattr(gated_timer, "tiny_kernels", lambda: tiny)
    return LateTimer(lambda: next(turns[called[-1]])).calibrate(tiny_kernel_us)


def test_overhead_comes_from_the_store_kernel_without_outliers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = {"empty": [2.66], "store": [3.10, 3.18, 3.10, 3.18, 3.10, 3.18, 3.10, 9.0]}
    result = calibrate(monkeypatch, {"empty": 0.55, "store": 0.80}, raw)
    assert result.floor_us == pytest.approx(2.66)
    assert result.added_us == pytest.approx(3.14 - 0.80)  # 2.11 by the empty one
    assert result.tick_us == pytest.approx(0.08)


def test_overhead_is_unknown_without_cupti(monkeypatch: pytest.MonkeyPatch) -> None:
    result = calibrate(monkeypatch, {}, {"empty": [2.87], "store": [3.2]})
    assert (result.floor_us, result.added_us) == (pytest.approx(2.87), None)
    calibrated_timer = CalibratedTimer(LateTimer(lambda: 5.0), result.added_us, result.tick_us)
    assert calibrated_timer.net_us([5.0]) == (5.0,)


def test_calibration_stores_to_different_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allocated: list[torch.Tensor] = []
    zeros = torch.zeros

    def recorded_zeros(*shape: int, **options: Any) -> torch.Tensor:
        allocated.append(zeros(*shape, **options))
        return allocated[-1]

    monkeypatch.setattr(torch, "zeros", recorded_zeros)
    with fake_gpu(CPU):
        kernels = gated_timer.tiny_kernels()
        assert list(kernels) == ["empty", "store"]
        (pages,) = allocated
        kernels["empty"]()
        assert not pages.any()
        for i in range(gated_timer.CALIBRATION_SAMPLES):
            kernels["store"]()
            assert int(pages.any(1).sum()) == i + 1
    assert {int(n) for n in (pages != 0).sum(1)} == {128 * 128 - 1}  # one of them is written as 0
    assert pages.stride(0) * pages.element_size() >= 2 * 2**20
