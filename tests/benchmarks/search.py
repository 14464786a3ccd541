"""How long a search of the knowledge takes, beside reading its pages once.

    python tests/benchmarks/search.py [--json PATH]

The least of twenty of each.
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
    """The least of so many."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def read() -> int:
    """All pages, from the disk's cache."""
    return sum(len(path.read_text()) for path in PAGES.rglob("*.md"))


def main() -> None:
    """Prints the table."""
    first = seconds(lambda: knowledge.search("warm"), 1)
    plain = seconds(read, REPEATS)
    taken = {f"search {q!r}": seconds(lambda q=q: knowledge.search(q), REPEATS) for q in QUERIES}
    taken = {"the first search of a process": first, **taken, "beside it: its pages read": plain}
    rows = [{"what": what, "least s": s, "of reading": s / plain} for what, s in taken.items()]
    report("A search of the knowledge", rows, repeats=REPEATS)


if __name__ == "__main__":
    main()
