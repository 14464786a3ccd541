"""Who is faster: paired rounds of one benchmark, with the control and the clock's tick in mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triton_magics import stats
from triton_magics.model import CONFIDENCE, Comparison, Timing, is_version

AGAIN = "torch (again)"
SAME_WITHIN = 0.01
SAME_CONFIDENCE = 0.95  # tests of equivalence use 90 %: to call a same kernel so is no great risk


def compare(
    timings: Sequence[Timing], tick_us: float | None, rivals: Sequence[str] = ()
) -> tuple[list[Comparison], list[Comparison]]:
    """Every provider against torch, versions against rivals and neighbours; and the A/A control."""
    size = timings[0].size if timings else ""
    by_name = {t.provider: t.samples_us + t.extra_us for t in timings}
    return compared(by_name, tick_us, size, rivals)


def compared(
    by_name: Mapping[str, Sequence[float]],
    tick_us: float | None,
    size: str,
    rivals: Sequence[str] = (),
) -> tuple[list[Comparison], list[Comparison]]:
    """The same, from net times by provider."""
    make = partial(_comparison, by_name, size, tick_us)
    control = []
    if AGAIN in by_name and "torch" in by_name:
        control = [make(AGAIN, "torch", restless=0.0)]
    restless = _restless(control)
    names = [n for n in by_name if n not in ("torch", AGAIN)]
    versions = [n for n in names if is_version(n)]
    pairs = [(n, "torch") for n in names if "torch" in by_name]
    pairs += [(n, rival) for rival in rivals if rival in by_name for n in versions if n != rival]
    pairs += list(zip(versions[1:], versions, strict=False))
    return [make(a, b, restless=restless) for a, b in dict.fromkeys(pairs)], control


def _restless(control: Sequence[Comparison]) -> float:
    """By how much the control, if there is one, differs from itself; 0 within its own threshold.

    Less than a tick is the clock's: it means less for longer times, and each pair minds its own.
    """
    return max((off for c in control if (off := abs(c.ratio - 1)) > c.threshold), default=0.0)


def _threshold(ours: Sequence[float], theirs: Sequence[float], tick_us: float | None) -> float:
    """What always counts as the same, or one tick of the clock as a share of the shorter time."""
    shortest = min((*ours, *theirs), default=1.0)
    return max(SAME_WITHIN, (tick_us or 0.0) / shortest)


def _comparison(
    by_name: Mapping[str, Sequence[float]],
    size: str,
    tick_us: float | None,
    candidate: str,
    baseline: str,
    *,
    restless: float,
) -> Comparison:
    ours, theirs = by_name[candidate], by_name[baseline]
    threshold = max(_threshold(ours, theirs, tick_us), restless)
    n = min(len(ours), len(theirs))
    interval = stats.paired_speedup(ours[:n], theirs[:n], confidence=CONFIDENCE)
    verdict = stats.verdict(interval, threshold)
    if verdict == "undecided":
        likely = stats.paired_speedup(ours[:n], theirs[:n], confidence=SAME_CONFIDENCE)
        verdict = "same" if stats.verdict(likely, threshold) == "same" else verdict
    return Comparison(
        candidate=candidate,
        baseline=baseline,
        size=size,
        ratio=interval.middle,
        low=interval.low,
        high=interval.high,
        threshold=threshold,
        rounds=n,
        verdict=verdict,
    )


def undecided(
    net_us: Mapping[str, Sequence[float]], tick_us: float | None, rivals: Sequence[str] = ()
) -> set[str]:
    """Who still waits for a verdict that will be told; with torch, always, its control.

    Both of them, too, where the control's own difference is what a verdict waits for: one that was
    restless in the first rounds by chance calms down in more of them.
    """
    told, control = compared(net_us, tick_us, "", rivals)
    open_ones = [c for c in told if c.verdict == "undecided"]
    names = {name for c in open_ones for name in (c.candidate, c.baseline)}
    by_control = any(_restless(control) >= c.threshold for c in open_ones)
    return names | {"torch", AGAIN} if by_control or "torch" in names else names
