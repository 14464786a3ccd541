"""The clock's arithmetic against numbers worked by hand: runs, rounds, finals, verdicts."""

from __future__ import annotations

import pytest

from triton_magics.harness.timing import rounds, speed_verdicts
from triton_magics.model import (
    Comparison,
    Timing,
)


def test_constants_of_the_clock() -> None:
    assert (rounds.WARM_CALLS, rounds.EXTRA_ROUNDS, rounds.MAX_ROUNDS) == (3, 15, 100)
    assert rounds.SMALL_SETS == 32
    assert speed_verdicts.EQUIVALENCE_MARGIN == 0.01
    assert speed_verdicts.EQUIVALENCE_CONFIDENCE == 0.95


# ----------------------------------------------------------------------------------- verdicts


def compare(tick_us: float | None = None, **us: list[float]) -> dict[tuple[str, str], Comparison]:
    names = {name.replace("again", speed_verdicts.CONTROL): times for name, times in us.items()}
    pairs, _ = speed_verdicts.compare_times(names, tick_us, "small")
    return {(c.candidate, c.baseline): c for c in pairs}


def test_threshold_is_a_percent_or_a_tick() -> None:
    times = {"torch": [10.0] * 10, "v1_a": [5.0] * 10}
    assert compare(**times)["v1_a", "torch"].threshold == 0.01
    assert compare(0.04, **times)["v1_a", "torch"].threshold == 0.01
    assert compare(0.1, **times)["v1_a", "torch"].threshold == pytest.approx(0.02)


def test_control_noise_above_its_threshold_widens() -> None:
    times = {"torch": [10.0] * 10, "v1_a": [5.0] * 10}
    noisy = compare(again=[10.5] * 10, **times)["v1_a", "torch"]
    assert noisy.threshold == pytest.approx(1 - 10 / 10.5)
    calm = compare(again=[10.05] * 10, **times)["v1_a", "torch"]
    assert calm.threshold == 0.01


def test_comparison_has_the_ratio_and_its_rounds() -> None:
    one = compare(torch=[10.0] * 10, v1_a=[5.0] * 8)["v1_a", "torch"]
    assert (one.ratio, one.low, one.high, one.rounds) == (
        pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0), 8
    )  # fmt: skip
    assert (one.verdict, one.size) == ("faster", "small")


def test_same_needs_less_confidence_than_faster() -> None:
    # Of ten rounds the 95 % interval leaves out the outliers; that of 99 % does not.
    ours = [100.0] * 7 + [99.0] * 3
    one = compare(torch=[100.0] * 10, v1_a=ours)["v1_a", "torch"]
    assert (one.low, one.high) == (pytest.approx(1.0), pytest.approx(1 / 0.99))
    assert one.verdict == "same"


def test_neighbours_and_baselines_are_compared_once() -> None:
    us = {n: [1.0] * 5 for n in ("torch", "v1_a", "v2_b", "torch.compile", speed_verdicts.CONTROL)}
    pairs, control = speed_verdicts.compare_times(us, None, "small", ("v1_a", "torch", "absent"))
    assert [(c.candidate, c.baseline) for c in pairs] == [
        ("v1_a", "torch"), ("v2_b", "torch"), ("torch.compile", "torch"), ("v2_b", "v1_a")
    ]  # fmt: skip
    assert [(c.candidate, c.baseline) for c in control] == [(speed_verdicts.CONTROL, "torch")]
    del us["torch"]
    pairs, control = speed_verdicts.compare_times(us, None, "small")
    assert [(c.candidate, c.baseline) for c in pairs] == [("v2_b", "v1_a")]
    assert control == []


def test_undecided_providers_get_more_rounds() -> None:
    wild = [50.0, 200.0] * 5
    calm = {"torch": [100.0] * 10, speed_verdicts.CONTROL: [100.0] * 10, "v1_a": [50.0] * 10}
    assert speed_verdicts.undecided_providers(calm, None) == set()
    names = speed_verdicts.undecided_providers(calm | {"v2_b": wild}, None)
    assert names == {"torch", speed_verdicts.CONTROL, "v1_a", "v2_b"}
    only = {"v1_a": [50.0] * 10, "v2_b": wild}
    assert speed_verdicts.undecided_providers(only, None) == {"v1_a", "v2_b"}


def test_torch_runs_again_where_its_noise_is_the_threshold() -> None:
    times = {"torch": [100.0] * 10, "v1_a": [50.0] * 10, "v2_b": [48.0, 54.0] * 5}
    noisy = times | {speed_verdicts.CONTROL: [105.0] * 10}
    calm = times | {speed_verdicts.CONTROL: [100.0] * 10}
    assert speed_verdicts.undecided_providers(noisy, None) == set(noisy)
    assert speed_verdicts.undecided_providers(calm, None) == {"v1_a", "v2_b"}


def test_extra_rounds_feed_the_verdict() -> None:
    slow = Timing(
        provider="v1_a", size="small", shape=(1,), clock="gpu",
        samples_us=(10.0,) * 3, extra_us=(10.0,) * 7,
    )  # fmt: skip
    fast = slow.evolve(provider="torch", samples_us=(5.0,) * 3, extra_us=(5.0,) * 7)
    ((one,), _) = speed_verdicts.compare_timings([fast, slow], None)
    assert (one.rounds, one.verdict, one.size) == (10, "slower", "small")
    assert speed_verdicts.compare_timings([], None) == ([], [])
    assert speed_verdicts.compare_timings([slow], None) == ([], [])
