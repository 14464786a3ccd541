"""Select the versions of a benchmark that a figure has room for."""

from __future__ import annotations

import math

from triton_magics.model import Benchmark


def select_versions(value: Benchmark, most: int) -> tuple[Benchmark, str]:
    """Select the first, the newest and the fastest versions of a benchmark.

    Args:
        value: the benchmark; its other providers stay.
        most: the number of versions, at least two.

    Returns:
        The benchmark with these versions in their order, and a note on the ones left out; the
        note is empty if all fit.
    """
    if len(value.versions) <= most:
        return value, ""
    ends = {value.versions[0], value.versions[-1]}
    others = sorted((v for v in value.versions if v not in ends), key=lambda v: _rank(value, v))
    selected = ends | set(others[: most - len(ends)])
    left_out = set(value.versions) - selected
    pairs = zip(value.versions, value.sha256s, strict=True)
    update = {
        "versions": tuple(v for v in value.versions if v in selected),
        "sha256s": tuple(sha256 for v, sha256 in pairs if v in selected),
        "providers": tuple(p for p in value.providers if p not in left_out),
        "timings": tuple(t for t in value.timings if t.provider not in left_out),
    }
    which = "the first, the newest and the fastest of the others"
    note = f"{most} of {len(value.versions)} versions: {which}"
    return value.evolve(**update), note


def _rank(value: Benchmark, version: str) -> tuple[float, float]:
    """Return the sort key of a version: its final, else its time at the largest size."""
    timings = [t for s in value.sizes if (t := value.timing(version, s))]
    return value.final_us(version) or math.inf, timings[-1].mean_us if timings else math.inf


__all__ = ["select_versions"]
