"""What a finished op has, checked against what is there; nothing is ticked by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from triton_magics.model import SIZES, Benchmark, Validation, short
from triton_magics.report.blocks import Document, Heading, Line
from triton_magics.report.log_input import LogInput, VersionLog
from triton_magics.report.numbers import anded
from triton_magics.report.views.case_tables import badges

OFFICIAL_RUNS = 10
Claim: TypeAlias = Callable[[VersionLog], bool]


class Item(NamedTuple):
    """One point: what it asks for, whether it is so, and if not, why."""

    text: str
    done: bool
    missing: str = ""


def checklist(given: LogInput) -> tuple[Item, ...]:
    """Every point of the list, in the order of the phases."""
    return (
        Item("Phase 1: the references were shown", given.state.state != "start"),
        _written(given),
        _each(given, "Phase 2: every version has its own file", _has_file),
        _each(given, "Phase 3: every version is right", _is_right),
        _each(given, "Phase 3: checked on a GPU, with the full plan", _fully_checked),
        _each(given, "Phase 3: no tolerance was loosened", _as_stated),
        _each(given, f"Phase 3: {OFFICIAL_RUNS} runs at small, medium and large", _timed(given)),
        _beside_torch(given),
        _chosen(given),
        Item("nothing was forced", not given.notes, "; ".join(given.notes)),
    )


def checklist_part(given: LogInput) -> Document:
    """The list as a part of the log."""
    items = checklist(given)
    done = sum(item.done for item in items)
    status = Line(
        f"{done} of {len(items)} points are met", "good" if done == len(items) else "warn"
    )
    return (Heading("Checklist", 2), status, *(_line(item) for item in items))


def _line(item: Item) -> Line:
    missing = f" — {item.missing}" if item.missing and not item.done else ""
    return Line(item.text + missing, "good" if item.done else "bad")


def _written(given: LogInput) -> Item:
    n, least = sum(v.counted for v in given.state.versions), given.state.min_writes
    return Item(f"Phase 2: at least {least} versions were written", n >= least, f"{n} so far")


def _each(given: LogInput, text: str, claim: Claim) -> Item:
    failing = [short(v.version) for v in given.versions if not claim(v)]
    missing = f"not {anded(failing)}" if failing else "no version yet"
    return Item(text, bool(given.versions) and not failing, missing)


def _has_file(version: VersionLog) -> bool:
    return version.source.path.endswith(f"/{version.version}.py")


def _verdict(version: VersionLog) -> Validation | None:
    return version.validation(version.source)


def _is_right(version: VersionLog) -> bool:
    verdict = _verdict(version)
    return verdict is not None and verdict.passed


def _fully_checked(version: VersionLog) -> bool:
    verdict = _verdict(version)
    return verdict is not None and verdict.device_kind == "gpu" and verdict.plan == "full"


def _as_stated(version: VersionLog) -> bool:
    verdict = _verdict(version)
    return verdict is not None and not any("loosened" in badge for badge in badges(verdict))


def _timed(given: LogInput) -> Claim:
    def claim(version: VersionLog) -> bool:
        value = given.timed_in(version)
        return value is not None and value.passed and _whole(value, version.version)

    return claim


def _whole(value: Benchmark, provider: str) -> bool:
    timings = [value.timing(provider, size) for size in SIZES]
    enough = all(t is not None and len(t.samples_us) >= OFFICIAL_RUNS for t in timings)
    return enough and value.clock == "gpu"


def _beside_torch(given: LogInput) -> Item:
    value = given.benchmark
    done = value is not None and "torch" in value.providers and _whole(value, "torch")
    return Item("Phase 3: torch was timed beside them", done, "no GPU times of torch")


def _chosen(given: LogInput) -> Item:
    best = given.best
    missing = "no version was chosen" if not best else f"provisional: {best.provisional}"
    return Item("Phase 4: a version was chosen", bool(best and not best.provisional), missing)
