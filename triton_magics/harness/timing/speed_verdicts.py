"""Speed verdicts from paired rounds, with the A/A control and the clock's tick as limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from triton_magics import stats
from triton_magics.model import CONFIDENCE, Comparison, Timing, is_version

CONTROL = "torch (again)"
EQUIVALENCE_MARGIN = 0.01
EQUIVALENCE_CONFIDENCE = 0.95  # tests of equivalence use 90 %: a wrong "same" costs little


def compare_timings(
    timings: Sequence[Timing], tick_us: float | None, baselines: Sequence[str] = ()
) -> tuple[list[Comparison], list[Comparison]]:
    """Compare providers with torch, and versions with baselines and neighbours.

    Returns:
        The comparisons, and the A/A control.
    """
    size = timings[0].size if timings else ""
    by_name = {t.provider: t.samples_us + t.extra_us for t in timings}
    return compare_times(by_name, tick_us, size, baselines)


def compare_times(
    by_name: Mapping[str, Sequence[float]],
    tick_us: float | None,
    size: str,
    baselines: Sequence[str] = (),
) -> tuple[list[Comparison], list[Comparison]]:
    """Compare as `compare_timings` does, from net times by provider."""
    make = partial(_comparison, by_name, size, tick_us)
    control = []
    if CONTROL in by_name and "torch" in by_name:
        control = [make(CONTROL, "torch", control_noise=0.0)]
    control_noise = _control_noise(control)
    names = [n for n in by_name if n not in ("torch", CONTROL)]
    versions = [n for n in names if is_version(n)]
    pairs = [(n, "torch") for n in names if "torch" in by_name]
    pairs += [(n, b) for b in baselines if b in by_name for n in versions if n != b]
    pairs += list(zip(versions[1:], versions, strict=False))
    return [make(a, b, control_noise=control_noise) for a, b in dict.fromkeys(pairs)], control


def _control_noise(control: Sequence[Comparison]) -> float:
    """Return how far the control's ratio is from 1; 0 within its own threshold.

    A difference below one clock tick is no noise: it matters less for longer times, and each
    pair's threshold includes it.
    """
    return max((off for c in control if (off := abs(c.ratio - 1)) > c.threshold), default=0.0)


def _threshold(
    times_us: Sequence[float], baseline_us: Sequence[float], tick_us: float | None
) -> float:
    """Return the equivalence margin, or one clock tick over the shorter time if that is more."""
    shortest = min((*times_us, *baseline_us), default=1.0)
    return max(EQUIVALENCE_MARGIN, (tick_us or 0.0) / shortest)


def _comparison(
    by_name: Mapping[str, Sequence[float]],
    size: str,
    tick_us: float | None,
    candidate: str,
    baseline: str,
    *,
    control_noise: float,
) -> Comparison:
    times_us, baseline_us = by_name[candidate], by_name[baseline]
    threshold = max(_threshold(times_us, baseline_us, tick_us), control_noise)
    n = min(len(times_us), len(baseline_us))
    interval = stats.paired_speedup(times_us[:n], baseline_us[:n], confidence=CONFIDENCE)
    verdict = stats.verdict(interval, threshold)
    if verdict == "undecided":
        likely = stats.paired_speedup(
            times_us[:n], baseline_us[:n], confidence=EQUIVALENCE_CONFIDENCE
        )
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


def undecided_providers(
    net_us: Mapping[str, Sequence[float]], tick_us: float | None, baselines: Sequence[str] = ()
) -> set[str]:
    """Return the providers of undecided comparisons; torch always with its control.

    Torch and the control are included, too, where control noise sets a pair's threshold: noise
    that is high in the first rounds by chance averages out in more rounds.
    """
    comparisons, control = compare_times(net_us, tick_us, "", baselines)
    pending = [c for c in comparisons if c.verdict == "undecided"]
    names = {name for c in pending for name in (c.candidate, c.baseline)}
    is_noisy = any(_control_noise(control) >= c.threshold for c in pending)
    return names | {"torch", CONTROL} if is_noisy or "torch" in names else names
