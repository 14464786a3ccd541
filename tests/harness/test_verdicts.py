"""Speed verdicts from paired times."""

from __future__ import annotations

import pytest

from triton_magics.harness.timing import speed_verdicts
from triton_magics.model import SIZES, Benchmark, Status, Timing


def timing(provider: str, samples: tuple[float, ...]) -> Timing:
    return Timing(provider=provider, size="small", shape=(1,), clock="gpu", samples_us=samples)


def test_versions_are_compared_with_torch_and_neighbours() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    comparisons, control = speed_verdicts.compare_timings(
        [
            timing("torch", base),
            timing("v1_a", tuple(b * 0.5 for b in base)),
            timing("v2_b", tuple(b * 0.5 for b in base)),
            timing(speed_verdicts.CONTROL, tuple(b * 1.001 for b in base)),
        ],
        0.032,
    )
    verdicts = {(c.candidate, c.baseline): (round(c.ratio, 3), c.verdict) for c in comparisons}
    assert verdicts == {
        ("v1_a", "torch"): (2.0, "faster"),
        ("v2_b", "torch"): (2.0, "faster"),
        ("v2_b", "v1_a"): (1.0, "same"),
    }
    assert control[0].verdict == "same"


def test_noisy_control_raises_the_threshold() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    rows = [timing("torch", base), timing("v1_a", tuple(b * 0.96 for b in base))]
    quiet, _ = speed_verdicts.compare_timings([*rows, timing(speed_verdicts.CONTROL, base)], None)
    noisy, _ = speed_verdicts.compare_timings(
        [*rows, timing(speed_verdicts.CONTROL, tuple(b * 0.9 for b in base))], None
    )
    assert quiet[0].verdict == "faster"
    assert noisy[0].verdict == "same"


def test_one_clock_tick_is_no_difference() -> None:
    rows = [timing("torch", (2.048,) * 5), timing("v1_a", (1.024,) * 5)]
    coarse, _ = speed_verdicts.compare_timings(rows, 1.024)
    fine, _ = speed_verdicts.compare_timings(rows, 0.032)
    assert coarse[0].verdict != "faster"
    assert fine[0].verdict == "faster"


def test_tick_threshold_is_relative_to_the_compared_times() -> None:
    short, long = (1.4,) * 10, (12.0,) * 10
    rows = [
        timing("torch", short), timing("v1_a", long),
        timing("v2_b", tuple(us * 1.016 for us in long)), timing(speed_verdicts.CONTROL, short),
    ]  # fmt: skip
    comparisons, (control,) = speed_verdicts.compare_timings(rows, 0.032)
    by_pair = {(c.candidate, c.baseline): c for c in comparisons}
    assert by_pair["v2_b", "v1_a"].verdict == "slower"
    assert by_pair["v2_b", "v1_a"].threshold == 0.01
    assert control.threshold == pytest.approx(0.032 / 1.4)
    assert by_pair["v1_a", "torch"].threshold == pytest.approx(0.032 / 1.4)


def test_control_noise_below_one_tick_keeps_the_threshold() -> None:
    tick, long = 0.032, (12.0,) * 10
    rows = [timing("v1_a", long), timing("v2_b", tuple(us * 1.016 for us in long))]
    for off, threshold, verdict in ((0.031, 0.01, "slower"), (0.034, 0.034 / 1.4, "same")):
        pair = (timing("torch", (1.4,) * 10), timing(speed_verdicts.CONTROL, (1.4 - off,) * 10))
        verdicts = {
            (c.candidate, c.baseline): c
            for c in speed_verdicts.compare_timings([*rows, *pair], tick)[0]
        }
        assert verdicts["v2_b", "v1_a"].verdict == verdict
        assert verdicts["v2_b", "v1_a"].threshold == pytest.approx(threshold, rel=0.05)


def test_final_time_needs_one_clock() -> None:
    timed = [timing("v1_a", (us,)) for us in (1.0, 2.0, 30.0)]
    sized = [t.evolve(size=s) for t, s in zip(timed, SIZES, strict=True)]
    whole = Benchmark(
        op="softmax", status=Status.PASSED, versions=("v1_a",), sha256s=("0",), runs=1,
        providers=("v1_a",), sizes=SIZES, dtype="float32", clock="graph", seed=1, timings=sized,
    )  # fmt: skip
    assert whole.final_us("v1") == 11.0
    mixed = (sized[0].evolve(clock="graph"), *sized[1:])
    assert whole.evolve(timings=mixed).final_us("v1") is None
