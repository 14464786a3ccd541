"""Accuracy of verdicts, by resampling calls that were timed on a GPU. Needs no GPU.

Every round draws its calls from docs/measured/h200/calls.json and uses the code of a benchmark:
runs, rounds, the A/A control, extra rounds, verdicts. Not included: drift shared by a round (which
pairing cancels) and the correlation of consecutive calls.

    python tests/benchmarks/verdicts.py [--json PATH]
"""

from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from common import report

from triton_magics import stats
from triton_magics.harness.timers import gated_timer
from triton_magics.harness.timing import speed_verdicts
from triton_magics.harness.timing.rounds import EXTRA_ROUNDS, MAX_ROUNDS

CALLS = Path(__file__).parent.parent.parent / "docs" / "measured" / "h200" / "calls.json"
TRIES = 300
TORCH = 1.6  # times as long as the versions


def one(data: dict[str, Any], size: str, torchs: str, slower: float, draw: Any) -> Any:
    """Return the verdict on v2 against v1, where v2 takes `slower` times as long as v1."""
    ours, theirs = data["samples_us"][size], data["samples_us"][torchs]
    longer = {"torch": TORCH, speed_verdicts.CONTROL: TORCH, "v1": 1.0, "v2": slower}
    calls = max(1, min(int(gated_timer.RUN_US / min(*ours, *theirs)), gated_timer.MAX_CALLS))
    net: dict[str, list[float]] = {name: [] for name in longer}
    timed, done, rounds = set(longer), 0, 10
    while done < rounds and timed:
        for name in timed:
            run = stats.middle_mean(draw.choices(ours if name in ("v1", "v2") else theirs, k=calls))
            net[name].append((run - data["timer_us"]) * longer[name])
        done += 1
        if done == rounds < MAX_ROUNDS:
            timed &= speed_verdicts.undecided_providers(net, data["tick_us"])
            rounds = min(rounds + EXTRA_ROUNDS, MAX_ROUNDS)
    pairs, _ = speed_verdicts.compare_times(net, data["tick_us"], "")
    return next(c for c in pairs if (c.candidate, c.baseline) == ("v2", "v1"))


def row(data: dict[str, Any], size: str, torchs: str, slower: float) -> dict[str, Any]:
    """Return how often each verdict occurred, and the number of rounds."""
    draw = random.Random(f"{size} {slower}")
    comparisons = [one(data, size, torchs, slower, draw) for _ in range(TRIES)]
    counts = Counter(c.verdict for c in comparisons)
    raw = statistics.median(data["samples_us"][size])
    pair = "itself" if slower == 1 else f"{100 * (slower - 1):.0f} % slower"
    beside = "" if torchs == size else f", torch {torchs}"
    return {
        "what": f"{size} ({raw:.1f} us raw){beside}, {pair}",
        "tries": TRIES, **{w: counts[w] for w in ("faster", "slower", "same", "undecided")},
        "mean rounds": statistics.fmean(c.rounds for c in comparisons),
    }  # fmt: skip


def main() -> None:
    """Print the table."""
    data = json.loads(CALLS.read_text())
    races = [(size, size) for size in data["samples_us"]] + [("large", "small")]
    rows = [row(data, *race, slower) for slower in (1.0, 1.03) for race in races]
    report("Verdicts on resampled calls of an H200", rows)


if __name__ == "__main__":
    main()
