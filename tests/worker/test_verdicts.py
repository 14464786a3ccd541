"""Who is faster, from paired times."""

from __future__ import annotations

import pytest

from triton_magics.model import SIZES, Benchmark, Status, Timing
from triton_magics.worker import verdicts


def timing(provider: str, samples: tuple[float, ...]) -> Timing:
    return Timing(provider=provider, size="small", shape=(1,), clock="gpu", samples_us=samples)


def test_verdicts_compare_with_torch_and_neighbours_and_mind_the_control() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    made, control = verdicts.compare(
        [
            timing("torch", base),
            timing("v1_a", tuple(b * 0.5 for b in base)),
            timing("v2_b", tuple(b * 0.5 for b in base)),
            timing(verdicts.AGAIN, tuple(b * 1.001 for b in base)),
        ],
        0.032,
    )
    told = {(c.candidate, c.baseline): (round(c.ratio, 3), c.verdict) for c in made}
    assert told == {
        ("v1_a", "torch"): (2.0, "faster"),
        ("v2_b", "torch"): (2.0, "faster"),
        ("v2_b", "v1_a"): (1.0, "same"),
    }
    assert control[0].verdict == "same"


def test_a_restless_control_widens_what_counts_as_the_same() -> None:
    base = (10.0, 10.1, 9.9, 10.0, 10.05)
    rows = [timing("torch", base), timing("v1_a", tuple(b * 0.96 for b in base))]
    calm, _ = verdicts.compare([*rows, timing(verdicts.AGAIN, base)], None)
    restless, _ = verdicts.compare(
        [*rows, timing(verdicts.AGAIN, tuple(b * 0.9 for b in base))], None
    )
    assert calm[0].verdict == "faster"
    assert restless[0].verdict == "same"


def test_one_tick_of_the_clock_is_no_difference() -> None:
    rows = [timing("torch", (2.048,) * 5), timing("v1_a", (1.024,) * 5)]
    coarse, _ = verdicts.compare(rows, 1.024)
    fine, _ = verdicts.compare(rows, 0.032)
    assert coarse[0].verdict != "faster"
    assert fine[0].verdict == "faster"


def test_one_tick_is_a_share_of_the_two_that_are_compared() -> None:
    short, long = (1.4,) * 10, (12.0,) * 10
    rows = [
        timing("torch", short), timing("v1_a", long),
        timing("v2_b", tuple(us * 1.016 for us in long)), timing(verdicts.AGAIN, short),
    ]  # fmt: skip
    told, (control,) = verdicts.compare(rows, 0.032)
    found = {(c.candidate, c.baseline): c for c in told}
    assert found["v2_b", "v1_a"].verdict == "slower"
    assert found["v2_b", "v1_a"].threshold == 0.01
    assert control.threshold == pytest.approx(0.032 / 1.4)
    assert found["v1_a", "torch"].threshold == pytest.approx(0.032 / 1.4)


def test_a_control_within_one_tick_of_itself_widens_nothing() -> None:
    tick, long = 0.032, (12.0,) * 10
    rows = [timing("v1_a", long), timing("v2_b", tuple(us * 1.016 for us in long))]
    for off, threshold, verdict in ((0.031, 0.01, "slower"), (0.034, 0.034 / 1.4, "same")):
        pair = (timing("torch", (1.4,) * 10), timing(verdicts.AGAIN, (1.4 - off,) * 10))
        told = {(c.candidate, c.baseline): c for c in verdicts.compare([*rows, *pair], tick)[0]}
        assert told["v2_b", "v1_a"].verdict == verdict
        assert told["v2_b", "v1_a"].threshold == pytest.approx(threshold, rel=0.05)


def test_a_final_is_not_made_of_times_by_two_clocks() -> None:
    timed = [timing("v1_a", (us,)) for us in (1.0, 2.0, 30.0)]
    sized = [t.model_copy(update={"size": s}) for t, s in zip(timed, SIZES, strict=True)]
    whole = Benchmark(
        op="softmax", status=Status.PASSED, versions=("v1_a",), sha256s=("0",), runs=1,
        providers=("v1_a",), sizes=SIZES, dtype="float32", clock="graph", seed=1, timings=sized,
    )  # fmt: skip
    assert whole.final_us("v1") == 11.0
    mixed = (sized[0].model_copy(update={"clock": "graph"}), *sized[1:])
    assert whole.model_copy(update={"timings": mixed}).final_us("v1") is None
