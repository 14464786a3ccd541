"""The rounds of a benchmark against numbers worked by hand, and each way to lose a provider."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.harness.kit import Recorder
from tests.harness.sessions import ScriptedTimer, provider, right, session, with_timer
from triton_magics.harness.timers.gated_timer import (
    HOST_TOO_SLOW,
    Sample,
    TimedCall,
    UnstableTiming,
)
from triton_magics.harness.timing import input_pool, rounds
from triton_magics.harness.timing.rounds import time_all_sizes
from triton_magics.model import Discard, NotTimedCode, Status


def test_time_of_a_run_is_the_mean_of_its_middle_half() -> None:
    # A call of 9 us is made 12 times a run; warm-up takes three calls of each provider.
    script = itertools.chain(
        [9.0] * 9, itertools.cycle([1.0, 2.0, 3.0] + [9.0, 11.0] * 3 + [90.0] * 3)
    )
    one = session(provider(right), raw_us=lambda: next(script), runs=2)
    for timing in time_all_sizes(one)["timings"]:
        assert timing.calls == 12
        assert timing.raw_us == pytest.approx((10.0, 10.0))  # without the 3 least and greatest
        assert timing.samples_us == pytest.approx((7.5, 7.5))  # without the timer's 2.5


def run_undecided(**changes: Any) -> tuple[int, dict[str, Any]]:
    """Return the rounds of a version that is now faster, now slower, and the result."""
    script = itertools.cycle([50.0, 100.0, 100.0, 50.0, 100.0])
    one = session(provider(right), raw_us=lambda: next(script), runs=10)
    result = time_all_sizes(replace(one, **changes))
    (version,) = (t for t in result["timings"] if t.provider == "v1_a")
    return len(version.samples_us) + len(version.extra_us), result


def test_a_deadline_ends_the_extra_rounds() -> None:
    n, result = run_undecided(deadline=time.monotonic() - 1)
    assert n == 10
    assert result["comparisons"][0].verdict == "undecided"


def test_extra_rounds_come_fifteen_at_a_time_to_a_hundred() -> None:
    n, result = run_undecided(deadline=time.monotonic() + 600)
    assert n == 100 or (n - 10) % 15 == 0
    assert n > 10
    (version,) = (t for t in result["timings"] if t.provider == "v1_a")
    assert len(version.samples_us) == 10  # official runs alone make the mean


def test_a_size_that_was_timed_passes() -> None:
    def fails(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    result = time_all_sizes(session(provider(fails), sizes=("small", "medium"), runs=2))
    assert result["status"] is Status.PASSED
    assert [(n.size, n.provider) for n in result["not_timed"]] == [
        ("small", "v1_a"), ("medium", "v1_a")
    ]  # fmt: skip
    assert {t.size for t in result["timings"]} == {"small", "medium"}
    assert [c.size for c in result["controls"]] == ["small", "medium"]


def test_wrong_output_of_a_baseline_in_a_run_drops_it() -> None:
    calls = itertools.count()

    def drifts(x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1) + (next(calls) > 8)

    one = session(rounds.Provider("m:drifts", drifts), baselines=("m:drifts",), runs=6)
    result = time_all_sizes(one)
    (missing,) = result["not_timed"]
    assert (missing.provider, missing.code) == ("m:drifts", NotTimedCode.WRONG_OUTPUT)
    assert missing.reason.startswith("it does not compute sum: ")
    assert result["status"] is Status.PASSED


# ------------------------------------------------------------------------------------ warm-up


class ByProvider(ScriptedTimer):
    """A timer whose times depend on the function, and which writes down what it does."""

    def __init__(self, us: dict[Callable[..., Any], Iterator[float]]) -> None:
        super().__init__(lambda: 100.0)
        self.us, self.done = us, []  # type: ignore[var-annotated]

    def run(self, calls: Sequence[TimedCall]) -> list[Sample]:
        self.done.append(f"run {len(calls)}")
        times = self.us.get(calls[0].gate_key, itertools.repeat(100.0))
        return [replace(self.one(call), raw_us=next(times)) for call in calls]

    def synchronize(self) -> None:
        self.done.append("synchronize")


def test_calls_in_a_run_are_those_of_the_fastest_call() -> None:
    quick = itertools.chain([50.0, 9.0, 40.0], itertools.repeat(9.0))  # 110 us / 9 us = 12
    timer = ByProvider({right: quick})
    result = time_all_sizes(with_timer(timer, session(provider(right), runs=1)))
    assert {t.calls for t in result["timings"]} == {12}


def test_a_provider_is_warm_before_it_is_timed() -> None:
    events: list[str] = []

    def noted(x: torch.Tensor) -> torch.Tensor:
        events.append("call")
        return right(x)

    timer = ByProvider({})
    timer.done = events
    one = with_timer(timer, session(provider(noted), runs=1))
    time_all_sizes(replace(one, providers=one.providers[1:2], deadline=0.0))
    assert events == [*["call"] * 3, "synchronize", "run 3", *["call"] * 3, "run 1", "call"]


def test_progress_names_the_provider_and_the_size() -> None:
    one = session(provider(right), runs=2, sizes=("small", "medium"))
    result = time_all_sizes(replace(one, deadline=0.0))
    assert isinstance(one.report, Recorder)
    stages = one.report.stages
    assert stages[:5] == [
        "warming torch at small", "warming v1_a at small",
        f"warming {one.providers[-1].name} at small", "timing small", "timing small",
    ]  # fmt: skip
    assert stages[-1] == "timing medium"
    assert [t for t in one.report.timings if t in result["timings"]] == list(result["timings"])
    assert len(one.report.timings) == 6  # the control's too


@pytest.mark.parametrize(("small_bytes", "sets"), [(2**20, 32), (0, 15)])
def test_sets_of_inputs(monkeypatch: pytest.MonkeyPatch, small_bytes: int, sets: int) -> None:
    monkeypatch.setattr(input_pool, "SMALL_BYTES", small_bytes)
    monkeypatch.setattr(ScriptedTimer, "spread_bytes", 0)
    size_run = rounds._prepare_size(session(provider(right)), "small", 1)
    assert len(size_run.input_pool) == sets  # of large ones 12 more than providers


def test_without_a_provider_there_is_one_call() -> None:
    def fails(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no")

    one = session(provider(fails))
    size_run = rounds._prepare_size(replace(one, providers=one.providers[1:2]), "small", 1)
    assert (size_run.calls, size_run.active_providers) == (1, [])
    result = time_all_sizes(replace(one, providers=one.providers[1:2]))
    assert (result["status"], result["timings"]) == (Status.FAILED, ())


def test_a_wrong_baseline_is_dropped_in_its_warm_up() -> None:
    n_calls = []

    def twice(x: torch.Tensor) -> torch.Tensor:
        n_calls.append(x)
        return 2 * x.sum(-1)

    result = time_all_sizes(session(rounds.Provider("m:twice", twice), baselines=("m:twice",)))
    (missing,) = result["not_timed"]
    assert missing.code is NotTimedCode.WRONG_OUTPUT
    assert missing.reason.startswith("it does not compute sum: ")
    assert len(n_calls) == 6  # three to warm up, three that are timed


# ------------------------------------------------------------------------- why there is no time


@pytest.mark.parametrize(
    ("reason", "code"),
    [(HOST_TOO_SLOW, NotTimedCode.HOST_TOO_SLOW), ("the clock ran backwards", None)],
)
def test_code_of_an_unstable_time(reason: str, code: NotTimedCode | None) -> None:
    def unstable(_x: torch.Tensor) -> torch.Tensor:
        raise UnstableTiming([reason] * 4)

    (missing,) = time_all_sizes(session(provider(unstable)))["not_timed"]
    assert (missing.provider, missing.code) == ("v1_a", code)
    assert f"{reason} (4 times)" in missing.reason


def test_reason_of_a_baseline_is_short() -> None:
    def fails(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("x" * 500)

    (missing,) = time_all_sizes(session(rounds.Provider("m:fails", fails)))["not_timed"]
    head, note, tail = missing.reason.split("\n")
    assert (len(head), len(tail)) == (150, 50)
    assert head.startswith("ValueError: xxx")
    assert note == "… 312 characters left out …"


def test_reason_of_a_version_is_one_line() -> None:
    def fails(_x: torch.Tensor) -> torch.Tensor:
        raise ValueError("y" * 300)

    (missing,) = time_all_sizes(session(provider(fails)))["not_timed"]
    assert missing.reason.startswith("ValueError: yyy")
    assert "y" * 200 in missing.reason
    assert "\n" not in missing.reason


def test_nothing_is_timed_after_a_lost_context() -> None:
    def breaks(_x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    one = session(provider(breaks), sizes=("small", "medium"))
    result = time_all_sizes(one)
    assert result["status"] is Status.CRASHED
    assert result["message"].startswith("v1_a at small: RuntimeError: CUDA error: an illegal")
    assert result["message"].endswith("; nothing after it could be timed")
    assert isinstance(one.report, Recorder)
    assert not any("medium" in stage for stage in one.report.stages)


def test_a_size_beyond_memory_leaves_the_next() -> None:
    one = session(provider(right), sizes=("small", "medium"), runs=1)
    make = one.op.make_inputs

    def small_is_too_large(shape: tuple[int, ...], *rest: object) -> tuple[torch.Tensor, ...]:
        if shape == (16, 16):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return make(shape, *rest)

    result = time_all_sizes(replace(one, op=replace(one.op, make_inputs=small_is_too_large)))
    assert {t.size for t in result["timings"]} == {"medium"}
    assert [(n.size, n.provider) for n in result["not_timed"]] == [("small", None)]


def test_a_void_time_names_the_provider_and_the_fault() -> None:
    result = time_all_sizes(session(provider(lambda x: right(x) + 1)))
    assert result["message"].startswith("v1_a gave a wrong answer in a timed run at small: ")
    (culprit,) = result["not_timed"]
    assert culprit.reason == result["message"]


# ----------------------------------------------------------------------------- runs and rounds


def test_discards_are_counted_by_reason() -> None:
    class Discarding(ScriptedTimer):
        def one(self, call: TimedCall) -> Sample:
            sample = super().one(call)
            return Sample(sample.raw_us, sample.value, ("late", "late", "preempted"))

    one = with_timer(Discarding(lambda: 60.0), session(provider(right), runs=2))
    result = time_all_sizes(replace(one, deadline=0.0))
    for timing in result["timings"]:
        assert set(timing.discards) == {
            Discard(reason="late", count=4), Discard(reason="preempted", count=2)
        }  # fmt: skip


def test_extra_rounds_stop_when_the_verdict_is_clear() -> None:
    # Ten rounds of a version that is now faster, now slower; after them it takes half of torch's.
    noise = itertools.cycle([50.0, 200.0, 120.0, 60.0, 180.0])
    ours = itertools.chain([100.0] * 3, itertools.islice(noise, 10), itertools.repeat(50.0))
    timer = ByProvider({right: ours})
    result = time_all_sizes(with_timer(timer, session(provider(right), runs=10)))
    (version,) = (t for t in result["timings"] if t.provider == "v1_a")
    assert len(version.extra_us) in (15, 30, 45)
    assert result["comparisons"][0].verdict == "faster"
