"""The checklist of a finished op, computed from the recorded results."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from triton_magics.model import BadgeCode, Benchmark, Validation, short
from triton_magics.rendering.blocks import Document, Heading, Line
from triton_magics.rendering.log_input import LogInput, VersionLog
from triton_magics.rendering.numbers import join_with_and
from triton_magics.rendering.views.state import missing_text

OFFICIAL_RUNS = 10
Claim: TypeAlias = Callable[[VersionLog], bool]


class Item(NamedTuple):
    """One point: the requirement, its state, and the reason if it is not met."""

    text: str
    is_met: bool
    missing: str = ""


def checklist(log: LogInput) -> tuple[Item, ...]:
    """Return every point of the list, in the order of the phases."""
    return (
        Item("Phase 1: the references were shown", log.state.state != "start"),
        _enough_versions(log),
        _every_version(log, "Phase 2: every version has its own file", _has_file),
        _every_version(log, "Phase 3: every version is right", _is_right),
        _every_version(log, "Phase 3: checked on a GPU, with the full plan", _is_fully_checked),
        _every_version(log, "Phase 3: no tolerance was loosened", _has_stated_tolerance),
        _every_version(log, f"Phase 3: {OFFICIAL_RUNS} runs at {_sizes_text(log)}", _is_timed(log)),
        _torch_timed(log),
        _version_chosen(log),
        Item("no step was forced", not log.notes, "; ".join(log.notes)),
        Item("the workflow is at its end", log.state.is_done, missing_text(log.state)),
    )


def checklist_part(log: LogInput) -> Document:
    """Return the checklist as a section of the log."""
    items = checklist(log)
    n_met = sum(item.is_met for item in items)
    status = Line(
        f"{n_met} of {len(items)} points are met", "good" if n_met == len(items) else "warn"
    )
    return (Heading("Checklist", 2), status, *(_line(item) for item in items))


def _line(item: Item) -> Line:
    missing = f" — {item.missing}" if item.missing and not item.is_met else ""
    return Line(item.text + missing, "good" if item.is_met else "bad")


def _enough_versions(log: LogInput) -> Item:
    n, least = sum(v.counted for v in log.state.versions), log.state.min_writes
    return Item(f"Phase 2: at least {least} versions were written", n >= least, f"{n} so far")


def _every_version(log: LogInput, text: str, claim: Claim) -> Item:
    """Return a claim about every version but those that failed too often."""
    exhausted = {v.version for v in log.state.versions if v.exhausted}
    remaining = [v for v in log.versions if v.version not in exhausted]
    failing = [short(v.version) for v in remaining if not claim(v)]
    missing = f"not {join_with_and(failing)}" if failing else "no version yet"
    return Item(text, bool(remaining) and not failing, missing)


def _has_file(version: VersionLog) -> bool:
    return version.source.path.endswith(f"/{version.version}{version.source.suffix}")


def _validation(version: VersionLog) -> Validation | None:
    return version.validation(version.source)


def _is_right(version: VersionLog) -> bool:
    validation = _validation(version)
    return validation is not None and validation.passed


def _is_fully_checked(version: VersionLog) -> bool:
    validation = _validation(version)
    if validation is None or validation.device_kind != "gpu":
        return False
    return validation.coverage.has_every_case


def _has_stated_tolerance(version: VersionLog) -> bool:
    validation = _validation(version)
    codes = {badge.code for badge in validation.badges} if validation else set()
    return BadgeCode.LOOSENED_TOLERANCE not in codes


def _is_timed(log: LogInput) -> Claim:
    def claim(version: VersionLog) -> bool:
        value = log.current_benchmark(version)
        return value is not None and value.passed and _is_complete(value, version.version)

    return claim


def _sizes_text(log: LogInput) -> str:
    return join_with_and(list(log.facts.sizes))


def _is_complete(value: Benchmark, provider: str) -> bool:
    timings = [value.timing(provider, size) for size in value.op_sizes]
    enough = all(t is not None and len(t.samples_us) >= OFFICIAL_RUNS for t in timings)
    return enough and value.clock == "gpu"


def _torch_timed(log: LogInput) -> Item:
    value = log.benchmark
    is_met = value is not None and "torch" in value.providers and _is_complete(value, "torch")
    return Item("Phase 3: torch was timed with them", is_met, "no GPU times of torch")


def _version_chosen(log: LogInput) -> Item:
    best = log.best
    missing = "no version was chosen" if not best else f"provisional: {best.provisional}"
    return Item("Phase 4: a version was chosen", bool(best and not best.provisional), missing)
