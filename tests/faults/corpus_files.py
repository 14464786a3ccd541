"""The corpus's kernels: which there are, of which kind, and which of them a day has."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from tests.worker.harness import KERNELS, told

KINDS = ("wrong", "cheats", "right", "guards")
PARTS = 60


def kind_of(path: Path) -> str:
    """Its folder; of the files that stand for a check, `right` or `guards` by their verdict."""
    if path.parent != KERNELS:
        return path.parent.name
    return "right" if told(path, "status") == "passed" else "guards"


def files() -> list[Path]:
    """Every kernel of the corpus, in an order that mixes ops and kinds but never changes."""
    found = sorted(KERNELS.rglob("*.py"), key=lambda p: p.relative_to(KERNELS).as_posix())
    return found[::3] + found[1::3] + found[2::3]


def in_turn(paths: list[Path]) -> list[Path]:
    """Those that tell most of the guards first, the right ones last."""
    order = {"cheats": 0, "guards": 1, "wrong": 2, "right": 3}
    return sorted(paths, key=lambda p: order[kind_of(p)])


def needs(path: Path) -> str | None:
    """Where alone it shows what is wrong with it: `gpu` or `interpreter`; None: anywhere."""
    text = path.read_text()
    return next((n for n in ("gpu", "interpreter") if f"\nneeds: {n}" in text), None)


def part_of_day(day: date) -> str:
    """Another part each day; `PARTS` days in a row have every kernel once."""
    return f"{day.toordinal() % PARTS}/{PARTS}"


def part_of(paths: list[Path], part: str) -> list[Path]:
    """`3/20`: the third of twenty parts."""
    index, count = map(int, part.split("/"))
    return paths[index % count :: count]
