"""Time of a knowledge search, beside reading all pages once.

    python tests/benchmarks/search.py [--json PATH]

Each figure is the minimum of twenty.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from common import report

from triton_magics import knowledge

PAGES = Path(__file__).parent.parent.parent / "knowledge"
QUERIES = ("softmax", "why is a transposed matmul in float32 slow", "tl.dot precision")
REPEATS = 20


def seconds(act: Callable[[], object], times: int) -> float:
    """Return the minimum seconds of so many calls."""
    durations = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        durations.append(time.perf_counter() - start)
    return min(durations)


def read() -> int:
    """Read all pages from the page cache."""
    return sum(len(path.read_text()) for path in PAGES.rglob("*.md"))


def main() -> None:
    """Print the table."""
    first = seconds(lambda: knowledge.search("warm"), 1)
    plain = seconds(read, REPEATS)
    durations = {
        f"search {q!r}": seconds(lambda q=q: knowledge.search(q), REPEATS) for q in QUERIES
    }
    durations = {
        "the first search of a process": first,
        **durations,
        "beside it: its pages read": plain,
    }
    rows = [
        {"what": label, "least s": s, "of reading": s / plain} for label, s in durations.items()
    ]
    report("A search of the knowledge", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
