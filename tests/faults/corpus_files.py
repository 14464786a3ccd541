"""The kernels of the corpus: their files, kinds, and the part for each day."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

from tests.faults import class_mutants, mutate
from tests.faults.class_kernels import is_class_kernel, read_kernel
from tests.harness.kit import KERNELS, field_of

KINDS = ("wrong", "cheats", "right", "guards")
PARTS = 360


def kind_of(path: Path) -> str:
    """Return its folder; other files are `right`, or else `guards` or `class`, by their status."""
    if is_class_kernel(path):
        return "class_right" if read_kernel(path).is_right else "class_wrong"
    if path.parent.name in KINDS:
        return path.parent.name
    return "right" if field_of(path, "status") == "passed" else "guards"


def wrong_kernels() -> list[Path]:
    """Return the wrong kernels: those written by hand, and the mutants, which are built."""
    mutate.build()
    return sorted((KERNELS / "wrong").glob("*.py"))


def files() -> list[Path]:
    """Return every kernel of the corpus, in an order that mixes ops and kinds but never changes."""
    mutate.build()
    class_mutants.build()
    paths = sorted(KERNELS.rglob("*.py"), key=lambda p: p.relative_to(KERNELS).as_posix())
    return paths[::3] + paths[1::3] + paths[2::3]


def by_yield(paths: list[Path]) -> list[Path]:
    """Sort by what they show about the guards: cheats first, right ones last."""
    order = {"cheats": 0, "guards": 1, "wrong": 2, "right": 3, "class_wrong": 4}
    return sorted(paths, key=lambda p: order.get(kind_of(p), len(order)))


def needs(path: Path) -> str | None:
    """Return the only device that shows its fault, `gpu` or `interpreter`; None: both do."""
    text = path.read_text()
    return next((n for n in ("gpu", "interpreter") if f"\nneeds: {n}" in text), None)


def part_of_day(day: date) -> str:
    """Return the part of a day; `PARTS` days in a row have every kernel once."""
    return f"{day.toordinal() % PARTS}/{PARTS}"


def part_of(paths: list[Any], part: str) -> list[Any]:
    """Return a part of the list; `3/20` is the third of twenty."""
    index, count = map(int, part.split("/"))
    return paths[index % count :: count]
