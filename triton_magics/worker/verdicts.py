"""Who is faster: paired rounds of one benchmark, with the control and the clock's tick in mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triton_magics import stats
from triton_magics.model import Comparison, Timing

if TYPE_CHECKING:
    from triton_magics.worker.bench import Session

AGAIN = "torch (again)"
SAME_WITHIN = 0.01
QUICK_RESAMPLES = 400


def compare(
    timings: list[Timing], tick_us: float | None, *, seed: int
) -> tuple[list[Comparison], list[Comparison]]:
    """Every provider against torch, versions against their neighbours; and the A/A control."""
    by_name = {t.provider: _all(t) for t in timings}
    size = timings[0].size if timings else ""
    control = []
    noise = 0.0
    if AGAIN in by_name and "torch" in by_name:
        tick = _tick(by_name, tick_us)
        made = _comparison(AGAIN, "torch", by_name, size=size, threshold=tick, seed=seed)
        noise = abs(made.ratio - 1)
        control = [made]
    threshold = max(noise, _tick(by_name, tick_us))
    names = [n for n in by_name if n not in ("torch", AGAIN)]
    pairs = [(n, "torch") for n in names if "torch" in by_name]
    pairs += list(zip(names[1:], names, strict=False))
    made_pairs = [
        _comparison(a, b, by_name, size=size, threshold=threshold, seed=seed) for a, b in pairs
    ]
    return made_pairs, control


def _all(timing: Timing) -> tuple[float, ...]:
    return timing.samples_us + timing.extra_us


def _tick(by_name: dict[str, tuple[float, ...]], tick_us: float | None) -> float:
    """One tick of the clock as a share of the shortest time."""
    shortest = min((min(s) for s in by_name.values() if s), default=1.0)
    return max(SAME_WITHIN, (tick_us or 0.0) / shortest)


def _comparison(
    candidate: str,
    baseline: str,
    by_name: dict[str, tuple[float, ...]],
    *,
    size: str,
    threshold: float,
    seed: int,
) -> Comparison:
    ours, theirs = by_name[candidate], by_name[baseline]
    n = min(len(ours), len(theirs))
    interval = stats.paired_speedup(ours[:n], theirs[:n], seed=seed)
    threshold = max(threshold, SAME_WITHIN)
    return Comparison(
        candidate=candidate,
        baseline=baseline,
        size=size,
        ratio=interval.middle,
        low=interval.low,
        high=interval.high,
        threshold=threshold,
        rounds=n,
        verdict=stats.verdict(interval, threshold),
    )


def undecided(raw_us: dict[str, list[float]], session: Session) -> bool:
    """Whether any verdict that will be told is still open."""
    net = {n: tuple(max(r - session.correction_us, 0.01) for r in s) for n, s in raw_us.items()}
    names = [n for n in net if n not in ("torch", AGAIN)]
    pairs = [(n, "torch") for n in names if "torch" in net] + list(
        zip(names[1:], names, strict=False)
    )
    threshold = _tick(net, session.tick_us)
    for a, b in pairs:
        interval = stats.paired_speedup(net[a], net[b], resamples=QUICK_RESAMPLES)
        if stats.verdict(interval, threshold) == "undecided":
            return True
    return False
