"""False alarms of `check-regressions`, on recorded times of one kernel in several processes of an H200.

    python tests/benchmarks/false_alarms.py [--json PATH]

Then is one recorded benchmark; now are benchmarks of another process, the second of a third one. Each is the mean
of ten runs, with an interval of no width: the real one is wider, and gives fewer alarms. Also with 8 % taken away.
"""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

from common import report

from triton_magics.stats import Interval, verdict
from triton_magics.verbs._retiming import THRESHOLD, change_of

RECORD = Path(__file__).parents[2] / "docs" / "measured" / "h200" / "spread.json"
TRIES = 20_000
TICK_US = 0.032


def sessions(size: str) -> list[list[tuple[float, float]]]:
    """Return torch's and the version's means of each benchmark, by process."""
    processes = json.loads(RECORD.read_text())["processes"]
    means = [p["means us"] for p in processes]
    return [
        list(zip(m[f"torch {size}"], m[f"v1_right {size}"], strict=False))
        for m in means
        if f"torch {size}" in m and f"v1_right {size}" in m
    ]


def row(size: str, slower: float, threshold: float) -> dict[str, Any]:
    """Return the shares of first and of confirmed alarms for a kernel that is so much slower."""
    generator, every = random.Random(1), sessions(size)
    triples = list(itertools.permutations(range(len(every)), 3))
    first = confirmed = 0
    for _ in range(TRIES):
        then, *now = (generator.choice(every[i]) for i in generator.choice(triples))
        limit = threshold + TICK_US / then[1]
        verdicts = [
            verdict(change_of([speed(then)], [speed(one, slower)]), limit) == "slower"
            for one in now
        ]
        first += verdicts[0]
        confirmed += all(verdicts)
    return {
        "what": f"{size}, {slower:.0%} slower" if slower else f"{size}, itself",
        "threshold": threshold,
        "processes": len(every),
        "first alarms %": 100 * first / TRIES,
        "confirmed %": 100 * confirmed / TRIES,
    }


def speed(means: tuple[float, float], slower: float = 0.0) -> Interval:
    """Return the speedup over torch."""
    ratio = means[0] / (means[1] * (1 + slower))
    return Interval(ratio, ratio, ratio)


def main() -> None:
    """Print the table."""
    rows = [
        row(size, slower, threshold)
        for size in ("small", "medium")
        for threshold in (0.02, 0.03, THRESHOLD)
        for slower in (0.0, 0.10)
    ]
    report("False alarms of check-regressions, H200 times of 2026-11-22, resampled", rows)


if __name__ == "__main__":
    main()
