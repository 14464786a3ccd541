"""Which of very many versions a figure shows."""

from __future__ import annotations

import math

from triton_magics.model import Benchmark


def fewer(value: Benchmark, most: int) -> tuple[Benchmark, str]:
    """A benchmark of no more versions than a figure can show: the first, the newest, the fastest.

    Args:
        value: the benchmark; whoever is no version stays.
        most: how many versions, two at least.

    Returns:
        it, the versions in their order; words about who is left out, empty where nobody is.
    """
    if len(value.versions) <= most:
        return value, ""
    ends = {value.versions[0], value.versions[-1]}
    others = sorted((v for v in value.versions if v not in ends), key=lambda v: _time(value, v))
    kept = ends | set(others[: most - len(ends)])
    gone = set(value.versions) - kept
    pairs = zip(value.versions, value.sha256s, strict=True)
    update = {
        "versions": tuple(v for v in value.versions if v in kept),
        "sha256s": tuple(sha256 for v, sha256 in pairs if v in kept),
        "providers": tuple(p for p in value.providers if p not in gone),
        "timings": tuple(t for t in value.timings if t.provider not in gone),
    }
    which = "the first, the newest and the fastest of the others"
    words = f"{most} of {len(value.versions)} versions: {which}"
    return value.model_copy(update=update), words


def _time(value: Benchmark, version: str) -> tuple[float, float]:
    """What versions are ranked by: their final, or without one the time at the largest size."""
    timings = [t for s in value.sizes if (t := value.timing(version, s))]
    return value.final_us(version) or math.inf, timings[-1].mean_us if timings else math.inf


__all__ = ["fewer"]
